use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(message_ttl = "0s")]
    Emails,
}

fn main() {}
