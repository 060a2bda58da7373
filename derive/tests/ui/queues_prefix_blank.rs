use queuey_rabbitmq::Queues;

#[derive(Queues)]
#[queues(prefix = " ")]
enum Queue {
    Emails,
}

fn main() {}
