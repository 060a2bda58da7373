use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(retry(attempts = 3))]
    Emails,
}

fn main() {}
