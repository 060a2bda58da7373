use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    Emails(u8),
    Images,
}

fn main() {}
