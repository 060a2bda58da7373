use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(consumer_timeout = "0s")]
    Emails,
}

fn main() {}
