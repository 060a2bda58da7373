use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(prefetch = 0)]
    Emails,
    #[queue(prefetch = 0)]
    Images,
}

fn main() {}
