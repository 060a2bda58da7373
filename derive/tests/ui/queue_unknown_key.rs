use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(prefetsch = 16)]
    Emails,
}

fn main() {}
