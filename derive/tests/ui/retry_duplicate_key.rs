use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(retry(base = "1s", base = "2s"))]
    Emails,
}

fn main() {}
