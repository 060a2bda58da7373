use queuey_rabbitmq::Job;

#[derive(Job)]
#[job(queue = "Queue::Emails")]
struct Welcome;

fn main() {}
