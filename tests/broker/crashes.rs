//! What is known of the processes that ended with a job in hand.

use queuey_rabbitmq::{
    Backend, Delivery, QueueConfig, QueueKind, RabbitMqBackend, RabbitMqOptions, Uuid,
};

use crate::support::{Broker, jobs::*, until, version};

/// A queue of each kind that this broker has.
async fn queues(broker: &Broker) -> Vec<QueueConfig> {
    let mut queues = vec![broker.queue()];
    if version().is_none_or(|version| version >= (4, 0)) {
        queues.push(broker.queue().kind(QueueKind::Quorum));
    }
    broker.backend().await.declare(&queues).await.unwrap();
    queues
}

pub async fn what_is_given_back_counts_where_a_broker_cannot_tell(broker: Broker) {
    let backend = broker.backend().await;
    let tells = version().is_none_or(|version| version >= (4, 3));
    for queue in queues(&broker).await {
        let expected = match queue.kind {
            QueueKind::Quorum if tells => [0, 0, 0],
            // Only the flag says so: how often it was handed out is not known, or not believed.
            _ => [0, 1, 1],
        };
        backend.publish(&envelope(&queue, 1), None).await.unwrap();
        let mut deliveries = backend.consume(&queue).await.unwrap();

        for times in expected {
            let delivery = next(&mut deliveries).await;
            assert_eq!(delivery.crashes(), times, "{:?}", queue.kind);
            delivery.release().await.unwrap();
        }
    }
}

pub async fn a_lost_connection_is_no_crash_to_whoever_lost_it(broker: Broker) {
    for queue in queues(&broker).await {
        for (comes_back, times) in [(true, 0), (false, 1)] {
            let name = format!("crashes {}", Uuid::new_v4().simple());
            let loses = connected(&broker, &name).await;
            loses.publish(&envelope(&queue, 1), None).await.unwrap();
            let mut deliveries = loses.consume(&queue).await.unwrap();
            let delivery = next(&mut deliveries).await;

            broker.close_connections(&name);
            until("a closed connection", async || delivery.is_gone()).await;
            drop(delivery);
            if !comes_back {
                drop(deliveries);
                loses.close().await.unwrap();
                deliveries = broker.backend().await.consume(&queue).await.unwrap();
            }

            let again = next(&mut deliveries).await;
            assert!(again.redelivered());
            assert_eq!(again.crashes(), times, "{:?}", queue.kind);
            again.ack().await.unwrap();
        }
    }
}

async fn connected(broker: &Broker, name: &str) -> RabbitMqBackend {
    let options = RabbitMqOptions::new().connection_name(name);
    broker.backend_with(options).await
}
