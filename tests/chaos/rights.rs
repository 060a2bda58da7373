//! The operator takes rights away from a producer.

use std::time::Instant;

use log::Level;
use queuey_rabbitmq::{Error, RabbitMqBackend, RabbitMqOptions, Uuid};
use url::Url;

use crate::{
    lines::{self, listen},
    load::{Load, beside},
    quick,
    relay::Relay,
    support::{Broker, jobs::*, pause, until, within},
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

pub async fn a_password_that_is_wrong_for_a_while_ends_nothing_and_is_told_as_an_error(
    broker: Broker,
) {
    listen();
    let user = Uuid::new_v4().simple().to_string();
    broker.ctl_beside(&["add_user", &user, "secret"]).await;
    broker.ctl_later(&["delete_user", &user]);
    let rights = ["set_permissions", &user, ".*", ".*", ".*"];
    broker.ctl_beside(&rights).await;
    let relay = Relay::to(&broker.url);
    let mut url = Url::parse(&relay.url).unwrap();
    url.set_username(&user).unwrap();
    url.set_password(Some("secret")).unwrap();
    let options = quick().runtime(broker.runtime.clone());
    let backend = RabbitMqBackend::with_options(url.as_str(), options.clone()).await;
    let backend = backend.unwrap();
    let load = Load::on(&backend, broker.queue()).await;
    let refused = || {
        let lines = lines::about("cannot make the ");
        let errors = lines
            .iter()
            .filter(|(level, line)| *level == Level::Error && line.contains("ACCESS_REFUSED"));
        errors.count()
    };

    let worker = load.worker(&backend, MS).build().await.unwrap();
    let counts = beside(worker, async {
        load.enqueue_many(&backend, 20).await;
        load.until_done().await;
        broker
            .ctl_beside(&["change_password", &user, "other"])
            .await;
        relay.cut();
        // Of both connections, again and again.
        until("refusals in the log", async || refused() >= 6).await;
        assert!(lines::about("secret").is_empty());
        let first = within(
            "an answer",
            RabbitMqBackend::with_options(url.as_str(), options),
        )
        .await;
        let first = first.expect_err("a wrong password");
        assert!(matches!(first, Error::AccessRefused { .. }), "{first:?}");

        broker
            .ctl_beside(&["change_password", &user, "secret"])
            .await;
        load.enqueue_many(&backend, 20).await;
        load.until_done().await;
    })
    .await;

    load.account(&broker, counts).await;
}
