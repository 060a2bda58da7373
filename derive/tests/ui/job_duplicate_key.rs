use queuey_rabbitmq::Job;

#[derive(Job)]
#[job(queue = Queue::Emails, queue = Queue::Images)]
struct Welcome;

fn main() {}
