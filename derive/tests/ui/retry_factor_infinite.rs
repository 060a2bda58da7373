use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(retry(factor = 1e999))]
    Emails,
}

fn main() {}
