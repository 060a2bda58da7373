//! Alarms and the settings of the vhost, by the management API.

use serde::Deserialize;

use super::finding::Report;
use crate::management::Management;

#[derive(Debug, Deserialize)]
struct Health {
    #[serde(default)]
    alarms: Vec<Alarm>,
}

#[derive(Debug, Deserialize)]
struct Alarm {
    node: String,
    resource: String,
}

#[derive(Debug, Deserialize)]
struct Vhost {
    #[serde(default)]
    default_queue_type: String,
}

#[derive(Debug, Deserialize)]
struct Deprecated {
    name: String,
    /// Since 4.3, as far as is known.
    state: Option<String>,
}

pub(super) async fn check(api: &Management, report: &mut Report) {
    match api.get::<Health>("health/checks/alarms").await {
        Ok(health) => {
            for Alarm { node, resource } in health.alarms {
                let problem = format!("an alarm for {resource} is on: nobody can publish");
                let advice = format!("free {resource} on that node, or raise its limit");
                report.error("alarm", &node, &problem, &advice);
            }
        }
        Err(error) => report.not_checked("alarms", error.to_string()),
    }
    match api.get::<Vhost>("vhosts/{vhost}").await {
        Ok(Vhost { default_queue_type }) => {
            if !matches!(&*default_queue_type, "" | "undefined" | "classic") {
                let problem = format!(
                    "a queue whose type is not named becomes a {default_queue_type} queue; this \
                     library always names it, queuey 1.1 does not"
                );
                let advice = "let this library declare queues before queuey 1.1 does";
                report.note("default-queue-type", "vhost", &problem, advice);
            }
        }
        Err(error) => report.not_checked("the vhost's default queue type", error.to_string()),
    }
    match api.get::<Vec<Deprecated>>("deprecated-features").await {
        Ok(features) => {
            let transient = features
                .iter()
                .find(|it| it.name == "transient_nonexcl_queues");
            match transient.map(|it| it.state.as_deref()) {
                Some(Some("denied")) => report.note(
                    "deprecated",
                    "broker",
                    "queues that are not durable are denied",
                    "keep `durable`, which is the default",
                ),
                Some(None) => report.not_checked(
                    "whether queues that are not durable are denied",
                    "this version of RabbitMQ does not tell",
                ),
                _ => {}
            }
        }
        // Older than the notion.
        Err(error) if error.status == Some(404) => {}
        Err(error) => report.not_checked("deprecated features", error.to_string()),
    }
}
