use queuey_rabbitmq::Job;

#[derive(Job)]
#[job(queue = Emails)]
struct Welcome;

fn main() {}
