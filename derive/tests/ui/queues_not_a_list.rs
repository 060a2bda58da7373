use queuey_rabbitmq::Queues;

#[derive(Queues)]
#[queues = "shop"]
enum Queue {
    Emails,
}

fn main() {}
