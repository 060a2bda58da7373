use queuey_rabbitmq::Job;

#[derive(Job)]
#[job(queue = Queue::Emails, aliases = ["old", 2])]
struct Welcome;

fn main() {}
