use queuey_rabbitmq::Job;

#[derive(Job)]
#[job(name = "welcome")]
struct Welcome;

fn main() {}
