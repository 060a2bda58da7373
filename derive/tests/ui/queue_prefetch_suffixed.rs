use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(prefetch = 16u16)]
    Emails,
}

fn main() {}
