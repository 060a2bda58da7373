use queuey_rabbitmq::Queues;

#[derive(Queues)]
#[queues(prefix = "shop.")]
enum Queue {
    Emails,
}

fn main() {}
