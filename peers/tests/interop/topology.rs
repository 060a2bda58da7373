//! Queues both libraries declare.

use std::time::Duration;

use crate::{
    library::{Library, Queue, SECOND},
    support::{Broker, until},
};

/// A queue of the test's own.
fn queue(broker: &Broker) -> Queue {
    Queue {
        name: broker.name(),
        durable: true,
        message_ttl: None,
        max_priority: 10,
    }
}

/// Every way to configure a durable queue that changes its arguments.
fn queues(broker: &Broker) -> [Queue; 6] {
    let plain = || queue(broker);
    [
        plain(),
        Queue {
            max_priority: 0,
            ..plain()
        },
        Queue {
            max_priority: 255,
            ..plain()
        },
        Queue {
            message_ttl: Some(3600 * SECOND),
            ..plain()
        },
        Queue {
            message_ttl: Some(Duration::MAX),
            max_priority: 0,
            ..plain()
        },
        Queue {
            message_ttl: Some(Duration::from_nanos(3_600_000_000_001)),
            ..plain()
        },
    ]
}

pub async fn every_queue_is_declared_alike<A: Library, B: Library>(broker: Broker) {
    for queue in queues(&broker) {
        A::declare(&broker, &queue).await.unwrap();

        let declared = B::declare(&broker, &queue).await;

        assert_eq!(declared, Ok(()), "{queue:?}");
    }
}

pub async fn waits_share_one_hold<A: Library, B: Library>(broker: Broker) {
    for queue in queues(&broker) {
        let hold = format!("{}.deferred.1000", queue.name);
        assert_eq!(broker.ready(&hold).await, None);

        A::hold(&broker, &queue).await;
        assert_eq!(broker.ready(&hold).await, Some(2), "{queue:?}");
        B::hold(&broker, &queue).await;

        until(&format!("four jobs on {}", queue.name), async || {
            broker.ready(&queue.name).await == Some(4)
        })
        .await;
    }
}

pub async fn another_priority_is_refused<A: Library, B: Library>(broker: Broker) {
    let queue = queue(&broker);
    A::declare(&broker, &queue).await.unwrap();
    let other = Queue {
        max_priority: 5,
        ..queue
    };

    let refused = B::declare(&broker, &other).await.unwrap_err();

    assert!(refused.contains("PRECONDITION_FAILED"), "{refused}");
    assert!(refused.contains("x-max-priority"), "{refused}");
}

/// A broker may be told to refuse such queues.
pub async fn a_transient_queue_meets_the_same_answer<A: Library, B: Library>(broker: Broker) {
    let queue = Queue {
        durable: false,
        ..queue(&broker)
    };

    let first = A::declare(&broker, &queue).await;
    let second = B::declare(&broker, &queue).await;

    assert_eq!(first.is_ok(), second.is_ok(), "{first:?}, {second:?}");
    if first.is_ok() {
        A::hold(&broker, &queue).await;
        B::hold(&broker, &queue).await;
    }
}
