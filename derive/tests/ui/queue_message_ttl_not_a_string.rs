use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(message_ttl = 30)]
    Emails,
}

fn main() {}
