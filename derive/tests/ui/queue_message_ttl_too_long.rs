use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(message_ttl = "50d")]
    Emails,
}

fn main() {}
