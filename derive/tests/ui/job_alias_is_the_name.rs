use queuey_rabbitmq::Job;

#[derive(Job)]
#[job(queue = Queue::Emails, name = "welcome", aliases = ["welcome"])]
struct Welcome;

fn main() {}
