use queuey_rabbitmq::Job;

#[derive(Job)]
#[job(queue = Queue::Emails, name = " ")]
struct Welcome;

fn main() {}
