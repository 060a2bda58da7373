use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(prefetch = 0)]
    Emails,
}

fn main() {}
