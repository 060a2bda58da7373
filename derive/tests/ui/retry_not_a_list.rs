use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(retry = 3)]
    Emails,
}

fn main() {}
