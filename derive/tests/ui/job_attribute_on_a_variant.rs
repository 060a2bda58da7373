use queuey_rabbitmq::Job;

#[derive(Job)]
#[job(queue = Queue::Emails)]
enum Welcome {
    #[job(name = "user")]
    User,
}

fn main() {}
