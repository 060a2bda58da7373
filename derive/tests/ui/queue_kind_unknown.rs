use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(kind = "stream")]
    Emails,
}

fn main() {}
