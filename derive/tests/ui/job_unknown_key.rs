use queuey_rabbitmq::Job;

#[derive(Job)]
#[job(queue = Queue::Emails, prefetch = 3)]
struct Welcome;

fn main() {}
