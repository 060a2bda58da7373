use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(retry(delay =))]
    Emails,
}

fn main() {}
