use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(retry(factor = 0))]
    Emails,
}

fn main() {}
