use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(retry(base = "6m"))]
    Emails,
}

fn main() {}
