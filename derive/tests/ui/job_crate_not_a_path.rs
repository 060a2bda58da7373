use queuey_rabbitmq::Job;

#[derive(Job)]
#[job(queue = Queue::Emails, crate = "")]
struct Welcome;

fn main() {}
