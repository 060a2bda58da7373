use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(a::b = 16)]
    Emails,
}

fn main() {}
