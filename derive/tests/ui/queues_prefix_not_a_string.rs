use queuey_rabbitmq::Queues;

#[derive(Queues)]
#[queues(prefix = 1)]
enum Queue {
    Emails,
}

fn main() {}
