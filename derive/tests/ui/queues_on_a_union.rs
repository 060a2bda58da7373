use queuey_rabbitmq::Queues;

#[derive(Queues)]
union Queue {
    emails: u8,
}

fn main() {}
