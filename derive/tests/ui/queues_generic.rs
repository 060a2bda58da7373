use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue<const N: usize> {
    Emails,
}

fn main() {}
