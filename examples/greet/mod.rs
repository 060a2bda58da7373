//! What the `on_…` examples share: one job enqueued, run, and the worker stopped.

use queuey_rabbitmq::prelude::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Queues)]
#[queues(prefix = "example")]
enum Queue {
    Greetings,
}

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(queue = Queue::Greetings, name = "greet")]
struct Greet {
    name: String,
}

pub async fn greet(name: &str, runtime: Runtime) -> Result<(), Error> {
    let url = std::env::var("AMQP_URL").unwrap_or("amqp://localhost".into());
    let options = RabbitMqOptions::new().runtime(runtime);
    let backend = RabbitMqBackend::with_options(url, options).await?;
    let producer = Producer::new(backend.clone()).await?;
    producer.enqueue(&Greet { name: name.into() }).await?;

    let (greeted, greetings) = async_channel::bounded(1);
    let worker = Worker::builder(backend.clone())
        .handler_fn(move |Greet { name }, _| {
            let greeted = greeted.clone();
            async move {
                println!("hello from {name}");
                greeted.send(()).await?;
                Ok(())
            }
        })
        .build()
        .await?;
    let handle = worker.handle();
    let stop = async {
        let _ = greetings.recv().await;
        handle.shutdown();
    };
    let (report, ()) = futures_lite::future::zip(worker.run(), stop).await;
    println!("{} job done", report?.counts.succeeded);
    backend.close().await
}
