use queuey_rabbitmq::prelude::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Queues)]
enum Ours {
    Emails,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Queues)]
enum Theirs {
    Reports,
}

#[derive(Serialize, Deserialize, Job)]
#[job(queue = Theirs::Reports)]
struct Report;

async fn enqueue(producer: Producer<Ours, MemoryBackend>) {
    let _ = producer.enqueue(&Report).await;
}

fn main() {}
