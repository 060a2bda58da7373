//! What policies do to queues of ours, and hold queues that are somebody else's.

use std::time::Duration;

use queuey_rabbitmq::{
    QueueConfig, QueueKind,
    admin::{Admin, Terms, arguments_json},
    ladder, topology,
};
use serde_json::Value;

use super::finding::{Report, Severity};
use crate::queues::{Queue, Role};

pub(super) fn check(
    admin: &Admin,
    terms: &Terms,
    looked_at: &[QueueConfig],
    known: &[Queue],
    report: &mut Report,
) {
    let backend = admin.backend();
    let any_quorum = looked_at.iter().any(|it| it.kind == QueueKind::Quorum);
    for queue in known {
        let role = queue.role(backend);
        let is_ours = looked_at.iter().any(|config| match role {
            Role::Jobs => config.name == queue.name,
            Role::Dead => backend.dead_queue_name(&config.name) == queue.name,
            Role::Hold(of, _) => config.name == of,
            Role::Ladder => any_quorum,
        });
        if !is_ours {
            continue;
        }
        // It keeps jobs whose queue is gone.
        let is_end = queue.name == ladder::UNROUTABLE;
        let role_here = if is_end { &Role::Dead } else { &role };
        for (key, value) in &queue.effective_policy_definition {
            if let Some((severity, problem)) = effect(queue, role_here, terms, key, value) {
                let problem = format!("{} `{key}` to {value}: {problem}", policy(queue));
                let advice = "leave this queue out of the policy, or this out of its definition";
                report.add(severity, "policy", &queue.name, &problem, advice);
            }
        }
        if let Role::Hold(of, ms) = role {
            let suffix = &backend.options().deferred_suffix;
            let ours = arguments_json(&topology::hold_queue(of, true, suffix, ms));
            if !is_same(queue, &ours) {
                let has = Value::Object(queue.arguments.clone());
                let problem =
                    format!("jobs cannot wait in it: it is declared with {has}, not {ours}");
                let advice = "delete it when it is empty; it is made again when it is needed";
                report.error("hold-arguments", &queue.name, &problem, advice);
            }
        }
    }
}

/// Whether the arguments are ours. A type need not be named.
fn is_same(queue: &Queue, ours: &Value) -> bool {
    let mut has = queue.arguments.clone();
    has.entry("x-queue-type").or_insert("classic".into());
    Value::Object(has) == *ours
}

fn policy(queue: &Queue) -> String {
    let named = |kind, name: &Option<String>| {
        let name = name.as_ref().filter(|name| !name.is_empty())?;
        Some(format!("{kind} `{name}`"))
    };
    let both = [
        named("policy", &queue.policy),
        named("operator policy", &queue.operator_policy),
    ];
    match both {
        [Some(one), Some(other)] => format!("{one} and {other} set"),
        [one, other] => format!("{} sets", one.or(other).unwrap_or("a policy".into())),
    }
}

/// What `key` of a policy means for `queue`, if it bites.
fn effect(
    queue: &Queue,
    role: &Role<'_>,
    terms: &Terms,
    key: &str,
    value: &Value,
) -> Option<(Severity, String)> {
    use Severity::{Error, Note, Warning};
    let number = value.as_u64();
    let ms = |ms| humantime::format_duration(Duration::from_millis(ms));
    let is_quorum = queue.kind == "quorum";
    let own = |name: &str| queue.arguments.get(name).and_then(Value::as_u64);
    let (severity, problem) = match (key, role) {
        ("message-ttl", Role::Jobs) => (
            Warning,
            match is_quorum {
                true => "a job that is not run in time is dead",
                false => "a job that is not run in time is discarded",
            }
            .into(),
        ),
        ("message-ttl", Role::Dead) => (Note, "dead jobs are deleted after that time".into()),
        ("message-ttl", _) => {
            let wait = own("x-message-ttl").filter(|&wait| number < Some(wait))?;
            (
                Error,
                format!("jobs that are to wait {} come early", ms(wait)),
            )
        }
        ("expires", Role::Jobs) => (
            Warning,
            "the queue is deleted with its jobs when no worker was there for so long".into(),
        ),
        ("expires", Role::Dead) => (
            Error,
            "the queue is deleted with its dead jobs when it was not declared or looked at for so \
             long"
                .into(),
        ),
        ("expires", Role::Hold(..)) => {
            own("x-expires").filter(|&own| number < Some(own))?;
            (Error, "the queue may be deleted with jobs in it".into())
        }
        ("expires", Role::Ladder) => (Error, "the queue may be deleted with jobs in it".into()),
        ("max-length" | "max-length-bytes", role) => full(queue, role),
        ("delivery-limit", Role::Jobs) if is_quorum => {
            let ours = u64::try_from(topology::DELIVERY_LIMIT).unwrap_or_default();
            number.filter(|&limit| limit < ours)?;
            (
                Warning,
                format!("a job is dead after so many crashes of workers, not {ours}"),
            )
        }
        ("delivery-limit", Role::Dead) if is_quorum => (
            Warning,
            "dead jobs that were looked at so often are dropped".into(),
        ),
        ("dead-letter-exchange" | "dead-letter-routing-key", Role::Jobs) if !is_quorum => {
            (Note, "what the broker discards goes there".into())
        }
        ("consumer-timeout", Role::Jobs) => {
            let counts = !terms.is_before(3, 12) && (is_quorum || terms.is_before(4, 3));
            let short = number.filter(|&ms| counts && ms < DEFAULT_TIMEOUT_MS)?;
            let problem = format!("a job in hand for {} is handed out again", ms(short));
            (Note, problem)
        }
        ("ha-mode", _) => (
            Note,
            "mirrored queues are gone in RabbitMQ 4.0; use quorum queues there".into(),
        ),
        _ => return None,
    };
    Some((severity, problem))
}

/// Of brokers, for an ack.
const DEFAULT_TIMEOUT_MS: u64 = 30 * 60 * 1000;

/// What a length limit does once it is reached.
fn full(queue: &Queue, role: &Role<'_>) -> (Severity, String) {
    use Severity::{Error, Note, Warning};
    let overflow = queue
        .arguments
        .get("x-overflow")
        .or(queue.effective_policy_definition.get("overflow"));
    let refuses = overflow.and_then(Value::as_str).unwrap_or("drop-head") != "drop-head";
    let (severity, problem) = match (role, refuses) {
        (Role::Jobs, false) => (Error, "when it is full, each new job drops the oldest"),
        (Role::Jobs, true) if queue.kind == "quorum" => (Warning, "when it is full, enqueues fail"),
        (Role::Jobs, true) => (
            Error,
            "when it is full, enqueues fail, and jobs that return from a wait are lost",
        ),
        (Role::Dead, false) => (Note, "when it is full, each dead job drops the oldest"),
        (Role::Dead, true) => (Warning, "when it is full, jobs that die have nowhere to go"),
        (_, false) => (
            Error,
            "when it is full, the job that waits longest comes early",
        ),
        (_, true) => (
            Warning,
            "when it is full, retries and delayed enqueues fail",
        ),
    };
    (severity, problem.into())
}
