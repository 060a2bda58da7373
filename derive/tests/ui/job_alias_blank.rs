use queuey_rabbitmq::Job;

#[derive(Job)]
#[job(queue = Queue::Emails, aliases = ["old", ""])]
struct Welcome;

fn main() {}
