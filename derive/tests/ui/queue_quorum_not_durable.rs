use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(kind = "quorum", durable = false)]
    Emails,
}

fn main() {}
