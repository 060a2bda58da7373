//! The end.

use futures_lite::StreamExt;
use queuey_rabbitmq::{Backend, Error};

use crate::{harness::*, support::within};

pub async fn closing_ends_the_streams(h: impl Harness) {
    let queue = h.declared().await;
    let mut deliveries = h.consume(&queue).await;

    h.backend().close().await.unwrap();

    assert!(within("the end", deliveries.next()).await.is_none());
}

pub async fn a_closed_backend_refuses_everything(h: impl Harness) {
    let queue = h.declared().await;
    let job = envelope(&queue, 1);
    let delay = std::time::Duration::from_millis(1);
    let backend = h.backend();

    backend.close().await.unwrap();
    backend.close().await.unwrap();

    let closed = |result: queuey_rabbitmq::Result<()>| matches!(result, Err(Error::Closed));
    assert!(closed(backend.declare(std::slice::from_ref(&queue)).await));
    assert!(closed(backend.publish(&job, None).await));
    assert!(closed(backend.publish(&job, Some(delay)).await));
    assert!(closed(backend.defer(&job, delay).await));
    assert!(closed(backend.consume(&queue).await.map(drop)));
}
