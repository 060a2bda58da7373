use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(durable = "true")]
    Emails,
}

fn main() {}
