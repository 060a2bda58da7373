use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(kind = "quorum", max_priority = 5)]
    Emails,
}

fn main() {}
