use queuey_rabbitmq::Job;

#[derive(Job)]
#[job(queue = Queue::Emails)]
union Welcome {
    user: u8,
}

fn main() {}
