use queuey_rabbitmq::Job;

#[derive(Job)]
#[job(queue = Queue::Emails, retry(max_attempts = 0))]
struct Welcome;

fn main() {}
