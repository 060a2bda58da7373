use queuey_rabbitmq::Job;

#[derive(Job)]
#[job(queue = Queue::Emails)]
struct Welcome {
    #[job(name = "user")]
    user: u8,
}

fn main() {}
