use queuey_rabbitmq::Queues;

#[derive(Queues)]
struct Queue;

fn main() {}
