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

struct Printer;

impl JobHandler for Printer {
    type Job = Report;

    async fn handle(&self, _: Report, _: JobContext) -> Result<(), JobError> {
        Ok(())
    }
}

fn register(worker: WorkerBuilder<Ours, MemoryBackend>) {
    worker.handler(Printer);
}

fn main() {}
