use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(retry(delay = "30s"))]
    Emails,
}

fn main() {}
