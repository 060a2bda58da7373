use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(name = emails)]
    Emails,
}

fn main() {}
