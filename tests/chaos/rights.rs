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

/// A user of the broker whose rights and password can be taken away.
struct User<'a> {
    name: String,
    broker: &'a Broker,
}

impl<'a> User<'a> {
    async fn new(broker: &'a Broker) -> Self {
        let name = Uuid::new_v4().simple().to_string();
        broker.ctl_beside(&["add_user", &name, "secret"]).await;
        broker.ctl_later(&["delete_user", &name]);
        let user = Self { name, broker };
        user.may(".*", ".*").await;
        user
    }

    /// What it may write and read from now on.
    async fn may(&self, write: &str, read: &str) {
        let rights = ["set_permissions", &self.name, ".*", write, read];
        self.broker.ctl_beside(&rights).await;
    }

    async fn password(&self, password: &str) {
        let change = ["change_password", &self.name, password];
        self.broker.ctl_beside(&change).await;
    }

    /// `url`, as this user.
    fn at(&self, url: &str) -> String {
        let mut url = Url::parse(url).unwrap();
        url.set_username(&self.name).unwrap();
        url.set_password(Some("secret")).unwrap();
        url.into()
    }
}

pub async fn a_producer_without_rights_hears_so_at_once_and_works_when_it_has_them(broker: Broker) {
    let user = User::new(&broker).await;
    let options = RabbitMqOptions::new().runtime(broker.runtime.clone());
    let backend = RabbitMqBackend::with_options(&user.at(&broker.url), options).await;
    let backend = backend.unwrap();
    let load = Load::on(&backend, broker.queue()).await;

    let worker = load.worker(&backend, MS).build().await.unwrap();
    let counts = beside(worker, async {
        load.enqueue_many(&backend, 20).await;
        user.may("^$", ".*").await;
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

        user.may(".*", ".*").await;
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
    let user = User::new(&broker).await;
    let relay = Relay::to(&broker.url);
    let url = user.at(&relay.url);
    let options = quick().runtime(broker.runtime.clone());
    let backend = RabbitMqBackend::with_options(&url, options.clone()).await;
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
        user.password("other").await;
        relay.cut();
        // Of both connections, again and again.
        until("refusals in the log", async || refused() >= 6).await;
        assert!(lines::about("secret").is_empty());
        let first = within("an answer", RabbitMqBackend::with_options(&url, options)).await;
        let first = first.expect_err("a wrong password");
        assert!(matches!(first, Error::AccessRefused { .. }), "{first:?}");

        user.password("secret").await;
        load.enqueue_many(&backend, 20).await;
        load.until_done().await;
    })
    .await;

    load.account(&broker, counts).await;
}

pub async fn a_worker_that_may_not_read_is_unhealthy_until_it_may(broker: Broker) {
    let user = User::new(&broker).await;
    let relay = Relay::to(&broker.url);
    let options = quick().runtime(broker.runtime.clone());
    let backend = RabbitMqBackend::with_options(&user.at(&relay.url), options).await;
    let backend = backend.unwrap();
    let load = Load::on(&backend, broker.queue()).await;

    let worker = load.worker(&backend, MS).build().await.unwrap();
    let handle = worker.handle();
    let health = || handle.health().remove(0);
    let counts = beside(worker, async {
        until("a subscription", async || health().subscribed).await;
        user.may(".*", "^$").await;
        relay.cut();
        until("a refusal", async || {
            let told = health().trouble;
            !health().subscribed && told.is_some_and(|why| why.contains("ACCESS_REFUSED"))
        })
        .await;

        user.may(".*", ".*").await;
        load.enqueue_many(&backend, 20).await;
        load.until_done().await;
        assert_eq!((health().subscribed, health().trouble), (true, None));
    })
    .await;

    load.account(&broker, counts).await;
}
