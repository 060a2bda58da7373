use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(prefetch = LIMIT)]
    Emails,
}

fn main() {}
