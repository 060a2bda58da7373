use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(retry(base = "1s", backoff = "fixed", delay = "30s"))]
    Emails,
}

fn main() {}
