use queuey_rabbitmq::Queues;

#[derive(Queues)]
#[queues(crate = "not a path")]
enum Queue {
    Emails,
}

fn main() {}
