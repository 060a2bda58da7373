//! Settling when something is in the way.

use futures_lite::StreamExt;
use queuey_rabbitmq::{Backend, Delivery, Envelope, Error};

use crate::support::{Broker, within};

pub fn envelope(queue: &str) -> Envelope {
    Envelope::raw("test", queue, serde_json::value::to_raw_value(&1).unwrap())
}

pub async fn an_ack_on_a_dead_connection_is_a_failed_settlement(broker: Broker) {
    let backend = broker.backend().await;
    let queue = broker.queue();
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    backend.publish(&envelope(&queue.name), None).await.unwrap();
    let mut deliveries = backend.consume(&queue).await.unwrap();
    let delivery = within("a delivery", deliveries.next())
        .await
        .unwrap()
        .unwrap();

    backend.close().await.unwrap();
    let acked = within("an answer", delivery.ack()).await;

    assert!(matches!(
        acked.unwrap_err().error,
        Error::Disconnected { .. }
    ));
}
