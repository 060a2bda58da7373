use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(retry(jitter = 1))]
    Emails,
}

fn main() {}
