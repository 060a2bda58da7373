//! Jobs that workers have in hand for long, by the management API.

use std::{
    collections::HashMap,
    time::{Duration, SystemTime},
};

use queuey_rabbitmq::QueueConfig;
use serde::Deserialize;

use super::finding::Report;
use crate::{
    management::{Management, NoAnswer},
    output::age,
};

#[derive(Debug, Deserialize)]
struct Consumer {
    queue: Named,
    channel_details: Named,
}

#[derive(Debug, Deserialize)]
struct Named {
    #[serde(default)]
    name: String,
}

#[derive(Debug, Deserialize)]
struct Channel {
    name: String,
    idle_since: Option<String>,
    messages_unacknowledged: Option<u64>,
}

pub(super) async fn check(
    api: &Management,
    looked_at: &[QueueConfig],
    limit: Duration,
    report: &mut Report,
) {
    let (consumers, channels) = match ask(api).await {
        Ok(answers) => answers,
        Err(error) => return report.not_checked("jobs in hand", error.to_string()),
    };
    for consumer in consumers {
        let queue = &consumer.queue.name;
        let Some(channel) = channels.get(&consumer.channel_details.name) else {
            continue;
        };
        if let (Some(jobs @ 1..), Some(idle)) = (channel.messages_unacknowledged, channel.idle())
            && idle > limit
            && looked_at.iter().any(|config| config.name == *queue)
        {
            let problem = format!(
                "a worker has {jobs} jobs in hand and has neither got nor acked one for {}: {}",
                age(idle),
                channel.name
            );
            let advice = "see whether its handlers hang, and give them a `job_timeout`; a job that \
                          is not acked in time (30 min unless set) is handed out again";
            report.warning("in-hand", queue, &problem, advice);
        }
    }
}

async fn ask(api: &Management) -> Result<(Vec<Consumer>, HashMap<String, Channel>), NoAnswer> {
    let consumers = api.get("consumers/{vhost}").await?;
    let path = "vhosts/{vhost}/channels?columns=name,idle_since,messages_unacknowledged";
    let channels: Vec<Channel> = api.get(path).await?;
    let by_name = channels.into_iter().map(|it| (it.name.clone(), it));
    Ok((consumers, by_name.collect()))
}

impl Channel {
    fn idle(&self) -> Option<Duration> {
        let since = self.idle_since.as_ref()?.replace("+00:00", "Z");
        let since = humantime::parse_rfc3339_weak(&since).ok()?;
        SystemTime::now().duration_since(since).ok()
    }
}
