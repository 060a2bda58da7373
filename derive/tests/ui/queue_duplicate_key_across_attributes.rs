use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(prefetch = 16)]
    #[queue(prefetch = 16)]
    Emails,
}

fn main() {}
