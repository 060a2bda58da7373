use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(retry(backoff = "fixed", delay = "18446744073709551615d"))]
    Emails,
}

fn main() {}
