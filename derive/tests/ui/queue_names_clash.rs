use queuey_rabbitmq::Queues;

#[derive(Queues)]
enum Queue {
    ImageResize,
    #[queue(name = "image_resize")]
    Thumbnails,
}

fn main() {}
