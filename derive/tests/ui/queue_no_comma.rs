use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(prefetch = 16 durable = true)]
    Emails,
}

fn main() {}
