use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(retry(factor = "2"))]
    Emails,
}

fn main() {}
