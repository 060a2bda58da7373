use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    #[queue(retry(backoff = "none", jitter = true))]
    Emails,
}

fn main() {}
