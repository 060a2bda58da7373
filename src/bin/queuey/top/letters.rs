//! Dead letters for the screen: looked at, and replayed one by one.

use queuey_rabbitmq::{Chain, Error, admin::Admin};

use super::state::{Entry, Loaded, Question};
use crate::{
    output::letter_row,
    story::story,
    transfer::{How, one},
};

/// So many are shown of a queue.
const SHOWN: usize = 100;
/// So many are looked at to find one that was shown: others may have come before it since.
const SEARCHED: usize = 10_000;
/// What is shown of a story, in characters; a payload may have megabytes.
const TOLD: usize = 64 * 1024;

/// What came of a question to the broker.
pub(crate) struct Answer<T> {
    pub(crate) answer: T,
    /// The connection is lost.
    pub(crate) lost: Option<String>,
}

impl<T> Answer<T> {
    /// With what `failed` makes of an error, and of whether it is a lost connection.
    fn of(answer: queuey_rabbitmq::Result<T>, failed: impl FnOnce(String, bool) -> T) -> Self {
        match answer {
            Ok(answer) => Self { answer, lost: None },
            Err(error) => {
                let text = Chain(&error).to_string();
                let lost = is_lost(&error).then(|| text.clone());
                Self {
                    answer: failed(text, lost.is_some()),
                    lost,
                }
            }
        }
    }
}

/// The first dead letters of `queue`, which has them back.
pub(crate) async fn load(admin: &Admin, queue: &str) -> Answer<Loaded> {
    Answer::of(read(admin, queue).await, |why, _| Loaded::Failed(why))
}

async fn read(admin: &Admin, queue: &str) -> queuey_rabbitmq::Result<Loaded> {
    let dead = admin.backend().dead_queue_name(queue);
    let Some(mut pass) = admin.pass(&dead).await? else {
        return Ok(Loaded::Failed(format!("there is no queue {dead}")));
    };
    let mut entries = vec![];
    while entries.len() < SHOWN
        && let Some(letter) = pass.next().await?
    {
        let mut cells = letter_row(&letter).into_iter();
        let mut cell = || cells.next().unwrap_or_default();
        let (id, cells) = (cell(), [cell(), cell(), cell(), cell(), cell()]);
        entries.push(Entry {
            id,
            cells,
            story: story(&letter).chars().take(TOLD).collect(),
            is_job: letter.envelope.is_some(),
        });
        letter.keep();
    }
    let total = pass.total().into();
    pass.end().await?;
    Ok(Loaded::First(entries, total))
}

/// Publishes one dead job to its own queue, confirmed, and then removes it; tells how it went.
pub(crate) async fn replay(admin: &Admin, which: &Question) -> Answer<String> {
    let replayed = find_and_replay(admin, which).await;
    Answer::of(replayed, |why, is_lost| match is_lost {
        true => format!("perhaps replayed, look again: {why}"),
        false => format!("not replayed: {why}"),
    })
}

async fn find_and_replay(admin: &Admin, which: &Question) -> queuey_rabbitmq::Result<String> {
    let dead = admin.backend().dead_queue_name(&which.queue);
    let Some(mut pass) = admin.pass(&dead).await? else {
        return Ok(format!("not replayed: there is no queue {dead}"));
    };
    let mut replayed = None;
    for _ in 0..SEARCHED {
        let Some(letter) = pass.next().await? else {
            break;
        };
        let job = letter.envelope.as_ref();
        if job.is_some_and(|job| job.job_id.to_string() == which.id) {
            let how = How::Replay {
                keep_attempt: false,
            };
            replayed = Some(one(admin, &how, letter).await);
            break;
        }
        letter.keep();
    }
    pass.end().await?;
    match replayed {
        None => Ok(format!("not replayed: {} is no longer there", which.id)),
        Some(Ok(())) => Ok(format!("replayed {}", which.id)),
        Some(Err((_, error))) => Err(error),
    }
}

fn is_lost(error: &Error) -> bool {
    matches!(error, Error::Disconnected { .. } | Error::Closed)
}
