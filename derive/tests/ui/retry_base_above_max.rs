use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(retry(base = "10s", max = "5s"))]
    Emails,
}

fn main() {}
