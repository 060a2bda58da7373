use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(retry(max_attempts = 0))]
    Emails,
}

fn main() {}
