//! What is not tried again lands in the dead letters with its reason, and a hook hears of it.

use queuey_rabbitmq::prelude::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Queues)]
enum Queue {
    Reports,
}

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(queue = Queue::Reports, name = "render")]
struct Render {
    template: String,
}

async fn render(job: Render, _: JobContext) -> Result<(), JobError> {
    match job.template.as_str() {
        "broken" => panic!("template has no end"),
        "unknown" => Err(JobError::fatal("no such template")),
        _ => Ok(()),
    }
}

struct Pager;

impl DeadLetterHook for Pager {
    async fn on_dead_letter(&self, letter: DeadLetter) {
        println!("paged: {:?}: {}", letter.cause, letter.reason);
        if let Some(place) = letter.failure().and_then(|failure| failure.place.as_ref()) {
            println!("       at {place}");
        }
    }
}

fn main() -> Result<(), Error> {
    Runtime::default().block_on(async {
        let backend = MemoryBackend::new();
        let producer = Producer::new(backend.clone()).await?;
        for template in ["invoice", "broken", "unknown"] {
            let template = template.into();
            producer.enqueue(&Render { template }).await?;
        }
        backend.publish_raw("reports", b"{not a job")?;

        let worker = Worker::builder(backend.clone())
            .handler_fn(render)
            .on_dead_letter(Pager)
            .build()
            .await?;
        let handle = worker.handle();
        let stop = async {
            backend.idle().await;
            handle.shutdown();
        };
        let (report, ()) = futures_lite::future::zip(worker.run(), stop).await;

        println!("{} done", report?.counts.succeeded);
        for (envelope, reason) in backend.dead_letters("reports") {
            println!("dead: {} {}: {reason}", envelope.job_type, envelope.payload);
        }
        for body in backend.malformed("reports") {
            println!("set aside: {}", String::from_utf8_lossy(&body));
        }
        Ok(())
    })
}
