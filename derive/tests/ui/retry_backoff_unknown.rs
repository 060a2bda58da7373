use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(retry(backoff = "linear"))]
    Emails,
}

fn main() {}
