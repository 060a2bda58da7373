//! [`Queue`]: a queue as the management API shows it, and what queue of ours it is.

use std::collections::BTreeMap;

use queuey_rabbitmq::RabbitMqBackend;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::management::{Management, NoAnswer};

#[derive(Debug, Deserialize)]
pub(crate) struct Queue {
    pub(crate) name: String,
    /// Of everything since 3.8; `classic` and `quorum` are ours.
    #[serde(rename = "type", default)]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) exclusive: bool,
    #[serde(default, deserialize_with = "map_or_nothing")]
    pub(crate) arguments: Map<String, Value>,
    pub(crate) policy: Option<String>,
    pub(crate) operator_policy: Option<String>,
    #[serde(default, deserialize_with = "map_or_nothing")]
    pub(crate) effective_policy_definition: Map<String, Value>,
    /// Counts and rates are missing until the broker has counted.
    pub(crate) messages: Option<u64>,
    pub(crate) messages_unacknowledged: Option<u64>,
    #[serde(default)]
    message_stats: BTreeMap<String, Value>,
}

/// What a queue is for, by its name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Role<'a> {
    Jobs,
    Dead,
    /// Where jobs of this queue wait so many milliseconds.
    Hold(&'a str, u64),
    /// Where all jobs of quorum queues wait.
    Ladder,
}

const COLUMNS: &str = "name,type,exclusive,arguments,policy,operator_policy,\
effective_policy_definition,messages,messages_unacknowledged,message_stats";

/// Every queue of the vhost, in the order of their names.
pub(crate) async fn queues(management: &Management) -> Result<Vec<Queue>, NoAnswer> {
    let path = format!("queues/{{vhost}}?columns={COLUMNS}");
    let mut queues: Vec<Queue> = management.get(&path).await?;
    queues.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(queues)
}

impl Queue {
    pub(crate) fn role(&self, backend: &RabbitMqBackend) -> Role<'_> {
        let options = backend.options();
        role(&self.name, &options.dead_suffix, &options.deferred_suffix)
    }

    /// Whether jobs are consumed from it, as far as can be told.
    pub(crate) fn has_jobs(&self, backend: &RabbitMqBackend) -> bool {
        let is_ours = !self.exclusive && matches!(&*self.kind, "classic" | "quorum");
        is_ours && self.role(backend) == Role::Jobs
    }

    /// Per second, over the last seconds.
    pub(crate) fn rate(&self, what: &str) -> Option<f64> {
        // Without it, nothing was counted.
        self.messages_unacknowledged?;
        let details = self.message_stats.get(&format!("{what}_details"));
        Some(details.map_or(0.0, |it| it["rate"].as_f64().unwrap_or(0.0)))
    }
}

fn role<'a>(name: &'a str, dead_suffix: &str, deferred_suffix: &str) -> Role<'a> {
    let hold = || {
        let (rest, ms) = name.rsplit_once('.')?;
        Some(Role::Hold(
            rest.strip_suffix(deferred_suffix)?,
            ms.parse().ok()?,
        ))
    };
    match name {
        _ if name.starts_with("queuey.ladder.") => Role::Ladder,
        _ if name.ends_with(dead_suffix) => Role::Dead,
        _ => hold().unwrap_or(Role::Jobs),
    }
}

// Where nothing applies, some versions answer with an empty list or text.
fn map_or_nothing<'de, D: serde::Deserializer<'de>>(
    answer: D,
) -> Result<Map<String, Value>, D::Error> {
    Ok(match Value::deserialize(answer)? {
        Value::Object(map) => map,
        _ => Map::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_what_a_queue_is_for() {
        for (name, expected) in [
            ("emails", Role::Jobs),
            ("emails.dead", Role::Dead),
            ("emails.deferred.30000", Role::Hold("emails", 30000)),
            ("emails.deferred.x", Role::Jobs),
            ("queuey.ladder.ahead.3", Role::Ladder),
        ] {
            assert_eq!(role(name, ".dead", ".deferred"), expected, "{name}");
        }
    }
}
