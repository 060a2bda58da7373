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

fn register(worker: WorkerBuilder<Ours, MemoryBackend>) {
    worker.handler_fn(|_: Report, _| async { Ok(()) });
}

fn main() {}
