//! [`Cluster`]: the nodes of a broker, as their operator sees them.

use queuey_rabbitmq::{Addresses, RabbitMqBackend, RabbitMqOptions};

use crate::{
    node::{self, Away},
    support::Broker,
};

/// A broker of several nodes, which are numbered from 1.
pub struct Cluster {
    pub broker: Broker,
    urls: Vec<String>,
}

impl Cluster {
    pub fn of(broker: Broker) -> Self {
        let urls = std::env::var("AMQP_URLS").expect("run by tests/with-broker --nodes");
        Self {
            broker,
            urls: urls.split(',').map(str::to_owned).collect(),
        }
    }

    pub fn nodes(&self) -> impl Iterator<Item = usize> + use<> {
        1..=self.urls.len()
    }

    /// A backend that knows every node and tries this one first, then those that follow.
    pub async fn backend(&self, first: usize, options: RabbitMqOptions) -> RabbitMqBackend {
        let mut urls = self.urls.clone();
        urls.rotate_left(first - 1);
        let addresses = Addresses::try_from(&urls[..]).unwrap();
        let options = options.runtime(self.broker.runtime.clone());
        let backend = RabbitMqBackend::with_options(addresses, options).await;
        backend.expect("a node lets us in")
    }

    pub async fn kill(&self, number: usize) -> Away {
        node::kill_number(number).await
    }

    /// Waits until each queue can do without the node that dies next: what was just declared or
    /// started may not have all its members yet.
    pub async fn until_whole(&self) {
        let safe = "rabbit_upgrade_preparation:await_online_quorum_plus_one(30000).";
        let answer = self.broker.ctl_beside(&["eval", safe]).await;
        assert_eq!(answer.trim(), "true", "a queue lacks a member");
    }

    /// The node that leads `queue`.
    pub async fn leader(&self, queue: &str) -> usize {
        let listed = self.broker.ctl_beside(&["list_queues", "name", "leader"]);
        let listed = listed.await;
        let leader = listed
            .lines()
            .find_map(|line| line.strip_prefix(queue)?.strip_prefix('\t'))
            .unwrap_or_else(|| panic!("`{queue}` is not in {listed}"));
        // queuey-4711-2@localhost
        let number = leader
            .split_once('@')
            .and_then(|(name, _)| name.rsplit('-').next());
        number.and_then(|number| number.parse().ok()).unwrap()
    }
}
