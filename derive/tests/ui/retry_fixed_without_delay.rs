use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(retry(backoff = "fixed"))]
    Emails,
}

fn main() {}
