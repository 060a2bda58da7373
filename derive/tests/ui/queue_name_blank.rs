use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(name = "")]
    Emails,
}

fn main() {}
