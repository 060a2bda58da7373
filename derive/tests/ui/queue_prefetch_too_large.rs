use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(prefetch = 65536)]
    Emails,
}

fn main() {}
