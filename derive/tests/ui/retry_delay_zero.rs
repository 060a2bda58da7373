use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(retry(backoff = "fixed", delay = "0ms"))]
    Emails,
}

fn main() {}
