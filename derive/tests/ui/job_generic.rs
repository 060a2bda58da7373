use queuey_rabbitmq::Job;

#[derive(Job)]
#[job(queue = Queue::Emails)]
struct Welcome<'a>(&'a str);

fn main() {}
