use queuey_rabbitmq::Queues;

#[derive(Queues)]
#[queues(name = "shop")]
enum Queue {
    Emails,
}

fn main() {}
