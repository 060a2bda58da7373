use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queues(prefix = "shop")]
    Emails,
}

fn main() {}
