use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {}

fn main() {}
