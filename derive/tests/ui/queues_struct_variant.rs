use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    Emails { user: u8 },
}

fn main() {}
