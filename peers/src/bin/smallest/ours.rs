//! The smallest worker there is, to be weighed.

use queuey_rabbitmq::prelude::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Queues)]
enum Queue {
    Emails,
}

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(queue = Queue::Emails, name = "welcome")]
struct Welcome {
    user: u64,
}

fn main() -> Result<(), Error> {
    Runtime::default().block_on(async {
        let url = std::env::var("AMQP_URL").unwrap_or("amqp://localhost".into());
        let worker = Worker::builder(RabbitMqBackend::connect(url).await?)
            .handler_fn(async |job: Welcome, _: JobContext| {
                println!("welcome {}", job.user);
                Ok(())
            })
            .build()
            .await?;
        worker.run().await?;
        Ok(())
    })
}
