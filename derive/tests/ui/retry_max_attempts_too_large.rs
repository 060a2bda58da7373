use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(retry(max_attempts = 4294967296))]
    Emails,
}

fn main() {}
