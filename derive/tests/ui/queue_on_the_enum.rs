use queuey_rabbitmq::Queues;

#[derive(Queues)]
#[queue(name = "emails")]
enum Queue {
    Emails,
}

fn main() {}
