use queuey_rabbitmq::Job;

#[derive(Job)]
#[job(queue = Queue::Emails, aliases = ["old", "older", "old"])]
struct Welcome;

fn main() {}
