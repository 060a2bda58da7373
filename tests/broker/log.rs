//! What is written to the log, and what never is.

use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use futures_lite::StreamExt;
use log::{LevelFilter, Log, Metadata, Record};
use queuey_rabbitmq::{Backend, Delivery, RabbitMqBackend, RabbitMqOptions, Tls};

use crate::{
    connect::{self, SECRET},
    support::{Broker, jobs::envelope, within},
};

/// Keeps what the tests ask about; everything would be a lot.
struct Watch(Mutex<Seen>);

struct Seen {
    lapin: usize,
    leaks: Vec<String>,
}

static WATCH: Watch = Watch(Mutex::new(Seen {
    lapin: 0,
    leaks: Vec::new(),
}));

impl Watch {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log for Watch {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let text = format!("{} {} {}", record.level(), record.target(), record.args());
        let mut seen = self.seen();
        seen.lapin += usize::from(record.target().starts_with("lapin"));
        if shows(&text) {
            seen.leaks.push(text);
        }
    }

    fn flush(&self) {}
}

/// Whether the password is in it, as text or as the bytes that `Debug` makes of an AMQP string.
fn shows(text: &str) -> bool {
    let bytes: Vec<_> = SECRET.bytes().map(|byte| byte.to_string()).collect();
    text.contains(SECRET) || text.contains(&bytes.join(", "))
}

/// Watches every record of this process, of other tests too, from now on.
fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        log::set_logger(&WATCH).unwrap();
        log::set_max_level(LevelFilter::Trace);
    });
}

pub async fn what_lapin_reports_reaches_the_log(broker: Broker) {
    watch();

    connect::connect(connect::address(&broker)).await.unwrap();

    assert!(WATCH.seen().lapin > 0);
}

/// Needs RABBITMQCTL.
pub async fn no_record_and_no_debug_text_shows_a_password(broker: Broker) {
    watch();
    let user = connect::new_user(&broker, SECRET, &["/"]);
    let address = connect::address(&broker).user(&user, SECRET);
    let tls = Tls::new().client_pkcs12([1, 2], SECRET);
    let options = RabbitMqOptions::new().tls(tls.clone());
    let queue = broker.queue();

    let refused = connect::connect(address.clone().user("guest", SECRET)).await;
    let lost = connect::connect(address.clone().port(1)).await;
    let backend = RabbitMqBackend::with_options(address.clone(), options.clone());
    let backend = backend.await.unwrap();
    let texts = [
        format!("{address:?} {tls:?} {options:?} {backend:?} {refused:?} {lost:?}"),
        format!("{address:#?} {tls:#?} {options:#?} {backend:#?} {refused:#?} {lost:#?}"),
        format!("{:?}", backend.options()),
        format!("{address} {} {}", refused.unwrap_err(), lost.unwrap_err()),
    ];
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    backend.publish(&envelope(&queue, 1), None).await.unwrap();
    let mut deliveries = backend.consume(&queue).await.unwrap();
    let delivery = within("the job", deliveries.next()).await.unwrap().unwrap();
    delivery.ack().await.unwrap();
    backend.close().await.unwrap();
    let closed = backend.publish(&envelope(&queue, 1), None).await;

    for text in texts.into_iter().chain([format!("{closed:?}")]) {
        assert!(!shows(&text), "{text}");
    }
    let seen = WATCH.seen();
    assert!(seen.lapin > 0, "nobody was watching");
    assert!(seen.leaks.is_empty(), "{:#?}", seen.leaks);
}
