use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(retry(backoff = "fixed", delay = "1.5s"))]
    Emails,
}

fn main() {}
