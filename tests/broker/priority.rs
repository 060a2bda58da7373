//! Who comes first.

use queuey_rabbitmq::{Backend, Delivery};

use crate::{
    options,
    support::{Broker, jobs::*, until},
};

async fn until_ready(broker: &Broker, queue: &str, count: u32) {
    until(&format!("{count} jobs ready"), async || {
        broker.ready(queue).await == Some(count)
    })
    .await;
}

pub async fn a_deferral_overtakes_only_what_is_still_queued(broker: Broker) {
    let backend = broker.backend_with(options(MS)).await;
    let queue = broker.queue().prefetch(3);
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    for number in 0..7 {
        let job = envelope(&queue, number);
        backend.publish(&job, None).await.unwrap();
    }
    let mut deliveries = backend.consume(&queue).await.unwrap();
    let first = next(&mut deliveries).await;
    until_ready(&broker, &queue.name, 4).await;

    let later = first.envelope().deferred(10);
    first.defer(&later, 1500 * MS).await.unwrap();
    // The ack lets one more job through before the deferral is back.
    until_ready(&broker, &queue.name, 3).await;
    until_ready(&broker, &queue.name, 4).await;

    let numbers = ack_numbers(&mut deliveries, 7).await;
    assert_eq!(numbers, [1, 2, 3, 0, 4, 5, 6]);
}

pub async fn a_priority_above_the_queues_levels_is_the_top_level(broker: Broker) {
    let backend = broker.backend_with(options(MS)).await;
    let queue = broker.queue().max_priority(3);
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    for (number, priority) in [(0, 0), (1, 3), (2, 255), (3, 2)] {
        let job = envelope(&queue, number).deferred(priority);
        backend.publish(&job, None).await.unwrap();
    }

    let mut deliveries = backend.consume(&queue).await.unwrap();

    assert_eq!(ack_numbers(&mut deliveries, 4).await, [1, 2, 3, 0]);
}

pub async fn few_jobs_behind_many_of_a_higher_priority_end(broker: Broker) {
    let backend = broker.backend_with(options(MS)).await;
    let queue = broker.queue();
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    for number in 0..1010 {
        let job = envelope(&queue, number);
        let job = if number < 10 { job } else { job.deferred(10) };
        backend.publish(&job, None).await.unwrap();
    }

    let mut deliveries = backend.consume(&queue).await.unwrap();

    let numbers = ack_numbers(&mut deliveries, 1010).await;
    assert_eq!(numbers[1000..], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
}
