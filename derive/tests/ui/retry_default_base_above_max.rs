use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(retry(max = "500ms"))]
    Emails,
}

fn main() {}
