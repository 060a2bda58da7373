use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(prefetch = -1)]
    Emails,
}

fn main() {}
