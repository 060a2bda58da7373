//! Who is let in, and what the others are told.

use std::time::{Duration, Instant};

use queuey_rabbitmq::{
    Address, Backend, Chain, Error, QueueConfig, RabbitMqBackend, RabbitMqOptions, Uuid,
    lapin::uri::AMQPUri,
};

use crate::support::{Broker, jobs::envelope, within};

/// Longer than any refusal may take, shorter than the limit of [`within`].
const LIMIT: Duration = Duration::from_secs(20);

/// A password that nothing else would ever say.
pub const SECRET: &str = "hush-7d1f-hush";

/// The broker's address, for whoever is calling.
pub fn address(broker: &Broker) -> Address {
    let authority = broker.url.parse::<AMQPUri>().unwrap().authority;
    Address::new(authority.host).port(authority.port)
}

pub async fn connect(address: Address) -> queuey_rabbitmq::Result<RabbitMqBackend> {
    let options = RabbitMqOptions::new().connect_timeout(LIMIT);
    let connecting = RabbitMqBackend::with_options(address, options);
    within("an answer to a login", connecting).await
}

/// What a login is answered with, and that it was in time.
pub async fn refusal(address: Address) -> (Error, String) {
    let asked = Instant::now();
    let error = connect(address).await.unwrap_err();
    assert!(asked.elapsed() < LIMIT, "{error}");
    let text = Chain(&error).to_string();
    assert!(!text.contains(SECRET), "{text}");
    assert!(!format!("{error:?}").contains(SECRET), "{error:?}");
    (error, text)
}

/// A user of the test's own, and the vhosts it may do everything in.
pub fn new_user(broker: &Broker, password: &str, vhosts: &[&str]) -> String {
    let name = format!("user {}", Uuid::new_v4().simple());
    let mut erlang = format!(
        "ok = rabbit_auth_backend_internal:add_user({}, {}, <<\"test\">>), ",
        binary(&name),
        binary(password)
    );
    for vhost in vhosts {
        erlang += &permissions(&name, vhost, ".*", ".*", ".*");
    }
    broker.ctl(&["eval", &format!("{erlang} done.")]);
    name
}

fn permissions(user: &str, vhost: &str, configure: &str, write: &str, read: &str) -> String {
    format!(
        "ok = rabbit_auth_backend_internal:set_permissions({}, {}, {}, {}, {}, <<\"test\">>), ",
        binary(user),
        binary(vhost),
        binary(configure),
        binary(write),
        binary(read)
    )
}

/// `text` as Erlang writes bytes, whatever is in it.
fn binary(text: &str) -> String {
    let bytes: Vec<_> = text.bytes().map(|byte| byte.to_string()).collect();
    format!("<<{}>>", bytes.join(","))
}

pub async fn a_wrong_password_is_called_a_refused_login(broker: Broker) {
    let (error, text) = refusal(address(&broker).user("guest", SECRET)).await;

    assert!(matches!(error, Error::AccessRefused { .. }), "{error:?}");
    assert!(text.contains("guest@127.0.0.1"), "{text}");
    assert!(text.contains("Login was refused"), "{text}");
}

pub async fn an_unknown_user_is_called_a_refused_login(broker: Broker) {
    let (error, text) = refusal(address(&broker).user("nobody", SECRET)).await;

    assert!(matches!(error, Error::AccessRefused { .. }), "{error:?}");
    assert!(text.contains("nobody@127.0.0.1"), "{text}");
    assert!(text.contains("Login was refused"), "{text}");
}

pub async fn a_vhost_that_does_not_exist_is_called_not_found(broker: Broker) {
    let (error, text) = refusal(address(&broker).vhost("no/where")).await;

    assert!(matches!(error, Error::AccessRefused { .. }), "{error:?}");
    assert!(text.contains("vhost no/where not found"), "{text}");
}

pub async fn a_reason_is_said_once(broker: Broker) {
    let (_, text) = refusal(address(&broker).vhost("no/where")).await;

    assert_eq!(text.matches("not found").count(), 1, "{text}");
    assert_eq!(text.matches("NOT_ALLOWED").count(), 1, "{text}");
}

pub async fn a_password_is_told_either_way(broker: Broker) {
    for mechanism in ["PLAIN", "AMQPLAIN"] {
        let uri = format!("{}?auth_mechanism={mechanism}", broker.url);

        let backend = connect(uri.parse().unwrap()).await.unwrap();

        assert!(backend.is_connected(), "{mechanism}");
        backend.close().await.unwrap();
    }
}

/// Needs RABBITMQCTL.
pub async fn a_user_without_the_vhost_is_told_which(broker: Broker) {
    let user = new_user(&broker, SECRET, &[]);

    let (error, text) = refusal(address(&broker).user(&user, SECRET)).await;

    assert!(matches!(error, Error::AccessRefused { .. }), "{error:?}");
    assert!(text.contains("access to vhost '/' refused"), "{text}");
    assert!(text.contains(&user), "{text}");
}

/// Needs RABBITMQCTL.
pub async fn a_user_without_permissions_is_told_what_is_refused_on_which_queue(broker: Broker) {
    let user = new_user(&broker, SECRET, &[]);
    let nothing = permissions(&user, "/", "", "", "");
    broker.ctl(&["eval", &format!("{nothing} done.")]);
    let queue = broker.queue();
    broker.declare(&queue.name, &[]).await;
    let backend = connect(address(&broker).user(&user, SECRET)).await.unwrap();

    let declared = backend.declare(std::slice::from_ref(&queue)).await;
    refused(declared.unwrap_err(), &queue, "declare", &user);
    let published = backend.publish(&envelope(&queue, 1), None).await;
    refused(published.unwrap_err(), &queue, "publish to", &user);
    let consumed = backend.consume(&queue).await;
    refused(consumed.unwrap_err(), &queue, "consume", &user);

    assert!(backend.is_connected(), "a refusal is no outage");
    let again = backend.publish(&envelope(&queue, 1), None).await;
    refused(again.unwrap_err(), &queue, "publish to", &user);
    backend.close().await.unwrap();
}

fn refused(error: Error, queue: &QueueConfig, action: &str, user: &str) {
    assert!(matches!(error, Error::AccessRefused { .. }), "{error:?}");
    let text = Chain(&error).to_string();
    let asked = format!("cannot {action} `{}`", queue.name);
    assert!(text.contains(&asked), "{text}");
    assert!(text.contains("access to "), "{text}");
    assert!(
        text.contains(&format!("refused for user '{user}'")),
        "{text}"
    );
}

/// Needs RABBITMQCTL.
pub async fn silence_is_noticed_within_a_minute_unless_asked_otherwise(broker: Broker) {
    for (asked, expected) in [(None, "30"), (Some(7), "7")] {
        let (name, address) = (broker.name(), address(&broker));
        let address = match asked {
            Some(seconds) => address.heartbeat(seconds),
            None => address,
        };
        let options = RabbitMqOptions::new()
            .connection_name(&*name)
            .runtime(broker.runtime.clone());
        let _backend = RabbitMqBackend::with_options(address, options)
            .await
            .unwrap();

        let listed = broker.ctl(&["list_connections", "timeout", "client_properties"]);
        let line = listed.lines().find(|line| line.contains(&name)).unwrap();
        assert_eq!(line.split('\t').next(), Some(expected));
    }
}

/// Needs RABBITMQCTL.
pub async fn special_characters_work_in_a_uri_and_in_the_builder(broker: Broker) {
    let vhost = format!("v/h % {}", Uuid::new_v4().simple());
    let password = "p@ss/w:%#é?&";
    let created = format!("rabbit_vhost:add({}, <<\"test\">>).", binary(&vhost));
    broker.ctl(&["eval", &created]);
    let user = new_user(&broker, password, &[&vhost]);
    let AMQPUri { authority, .. } = broker.url.parse().unwrap();

    let built = address(&broker).user(&user, password).vhost(&vhost);
    let text = format!(
        "amqp://{}:p%40ss%2Fw%3A%25%23%C3%A9%3F%26@{}:{}/{}",
        user.replace(' ', "%20"),
        authority.host,
        authority.port,
        vhost
            .replace('%', "%25")
            .replace('/', "%2F")
            .replace(' ', "%20"),
    );

    assert_eq!(built, text.parse().unwrap());
    let backend = connect(built).await.unwrap();
    assert!(!format!("{backend:?}").contains(password), "{backend:?}");
    let queue = broker.queue();
    backend.declare(std::slice::from_ref(&queue)).await.unwrap();
    backend.publish(&envelope(&queue, 1), None).await.unwrap();
    backend.close().await.unwrap();
    assert_eq!(broker.ready(&queue.name).await, None, "it is elsewhere");
    let removed = format!("rabbit_vhost:delete({}, <<\"test\">>).", binary(&vhost));
    broker.ctl(&["eval", &removed]);
}

/// The broker of the tests listens on 127.0.0.1 only.
pub async fn an_ipv6_address_is_never_taken_for_localhost(broker: Broker) {
    let AMQPUri { authority, .. } = broker.url.parse().unwrap();
    if authority.host != "127.0.0.1" {
        return; // Somebody's own broker may listen on ::1 too.
    }

    let uri = format!("amqp://guest:{SECRET}@[::1]:{}/%2f", authority.port);
    let (_, parsed) = refusal(uri.parse().unwrap()).await;
    let (_, built) = refusal(Address::new("::1").port(authority.port)).await;

    for text in [parsed, built] {
        assert!(text.contains("guest@[::1]:"), "{text}");
        assert!(text.contains("os error"), "no socket was opened: {text}");
    }
}
