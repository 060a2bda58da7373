use queuey_rabbitmq::Job;

#[derive(Job)]
struct Welcome;

fn main() {}
