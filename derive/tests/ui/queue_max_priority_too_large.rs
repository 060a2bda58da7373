use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(max_priority = 256)]
    Emails,
}

fn main() {}
