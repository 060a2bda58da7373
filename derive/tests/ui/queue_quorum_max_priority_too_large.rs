use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(kind = "quorum", max_priority = 32)]
    Emails,
}

fn main() {}
