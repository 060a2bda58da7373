//! The operator takes rights away from a producer.

use std::time::Instant;

use queuey_rabbitmq::{Error, RabbitMqBackend, RabbitMqOptions, Uuid};
use url::Url;

use crate::{
    load::{Load, beside},
    support::{Broker, jobs::*, pause, within},
};

pub async fn a_producer_without_rights_hears_so_at_once_and_works_when_it_has_them(broker: Broker) {
    let user = Uuid::new_v4().simple().to_string();
    let rights = async |write: &str| {
        let rights = ["set_permissions", &user, ".*", write, ".*"];
        broker.ctl_beside(&rights).await;
    };
    broker.ctl_beside(&["add_user", &user, "secret"]).await;
    broker.ctl_later(&["delete_user", &user]);
    rights(".*").await;
    let mut url = Url::parse(&broker.url).unwrap();
    url.set_username(&user).unwrap();
    url.set_password(Some("secret")).unwrap();
    let options = RabbitMqOptions::new().runtime(broker.runtime.clone());
    let backend = RabbitMqBackend::with_options(url.as_str(), options).await;
    let backend = backend.unwrap();
    let load = Load::on(&backend, broker.queue()).await;

    let worker = load.worker(&backend, MS).build().await.unwrap();
    let counts = beside(worker, async {
        load.enqueue_many(&backend, 20).await;
        rights("^$").await;
        // The broker asks again for the rights of a channel that has rested.
        let refused = within("a refusal", async {
            loop {
                let start = Instant::now();
                let answer = load.enqueue(&backend).await;
                assert!(start.elapsed() < 1000 * MS, "{:?}", start.elapsed());
                match answer {
                    Ok(_) => pause(1500 * MS).await,
                    Err(refused) => return refused,
                }
            }
        })
        .await;
        assert!(
            matches!(&refused, Error::AccessRefused { subject, .. }
                if *subject == load.queue.name),
            "{refused:?}"
        );
        let start = Instant::now();
        let again = load.enqueue(&backend).await;
        assert!(
            matches!(again, Err(Error::AccessRefused { .. })),
            "{again:?}"
        );
        assert!(start.elapsed() < 1000 * MS, "{:?}", start.elapsed());

        rights(".*").await;
        load.enqueue(&backend).await.unwrap();
        load.enqueue_many(&backend, 20).await;
        load.until_done().await;
    })
    .await;

    load.account(&broker, counts).await;
}
