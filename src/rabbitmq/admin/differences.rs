//! In what a queue differs from how it would be declared, in the broker's words.

use lapin::{
    options::QueueDeclareOptions,
    types::{AMQPValue, FieldTable},
};

use super::{
    Admin,
    check::{NOT_FOUND, refusal},
};
use crate::{
    Error, Result,
    limits::check_name,
    rabbitmq::{channel::OpenChannel, methods::declare_queue, topology::Declaration},
};

/// More than there are arguments.
const MANY: usize = 30;

/// One thing in which a queue differs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// Such as `x-max-priority` or `durable`.
    pub argument: String,
    /// The broker's, with both values.
    pub words: String,
}

impl Admin {
    /// In what the queue of this name differs from `queue`; `None` when there is none.
    ///
    /// The broker is asked to declare it once more. A queue that is deleted in the moment before
    /// would be made again.
    ///
    /// # Errors
    /// [`Error::AccessRefused`] without the right to configure it.
    pub async fn differences(&self, queue: &Declaration) -> Result<Option<Vec<Difference>>> {
        let mut queue = queue.clone();
        let mut differences = vec![];
        // The broker names one at a time.
        while differences.len() < MANY {
            let (argument, words) = match self.compare(&queue).await {
                Ok(true) => break,
                Ok(false) => return Ok(None),
                Err(Error::Precondition {
                    argument, source, ..
                }) => (argument, source.to_string()),
                Err(error) => return Err(error),
            };
            let goes_on = adopt(&mut queue, &argument, &words);
            differences.push(Difference { argument, words });
            if !goes_on {
                break;
            }
        }
        Ok(Some(differences))
    }

    /// Whether there is such a queue.
    async fn compare(&self, queue: &Declaration) -> Result<bool> {
        let name = queue.name.as_str();
        check_name(name)?;
        let live = self.live("declare", name).await?;
        let channel = OpenChannel::new(live.clone(), "declare", name).await?;
        let asked = async {
            let options = QueueDeclareOptions {
                passive: true,
                ..QueueDeclareOptions::default()
            };
            let found = channel.queue_declare(name.into(), options, FieldTable::default());
            match found.await {
                Ok(_) => declare_queue(&channel, queue).await.map(|()| true),
                Err(error) => match refusal(&error) {
                    Some((NOT_FOUND, _)) => Ok(false),
                    _ => Err(error),
                },
            }
        };
        live.ask("declare", name, asked).await
    }
}

/// Gives `argument` the value that the queue has, as the broker says: `but current is none`, `'10'`
/// or `the value '10' of type 'signedint'`.
fn adopt(ours: &mut Declaration, argument: &str, words: &str) -> bool {
    let Some((_, current)) = words.rsplit_once("current is ") else {
        return false;
    };
    let mut quoted = current.split('\'').skip(1).step_by(2);
    let (value, kind) = (quoted.next().unwrap_or_default(), quoted.next());
    let value = match (kind, value.parse(), value.parse()) {
        _ if current.starts_with("none") => None,
        (Some("longstr"), ..) => Some(AMQPValue::LongString(value.into())),
        (_, Ok(number), _) => Some(AMQPValue::LongLongInt(number)),
        (.., Ok(yes)) if argument == "durable" => {
            ours.durable = yes;
            return true;
        }
        (.., Ok(yes)) => Some(AMQPValue::Boolean(yes)),
        _ => return false,
    };
    let mut arguments = ours.arguments.inner().clone();
    arguments.remove(argument);
    arguments.extend(value.map(|value| (argument.into(), value)));
    ours.arguments = arguments.into();
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{QueueConfig, rabbitmq::topology};

    #[test]
    fn the_broker_says_what_a_queue_has() {
        let mut ours = topology::main_queue(&QueueConfig::new("q"), None);
        let mut says = |argument: &str, current: &str| {
            let words = format!("received none but current is {current}");
            let known = adopt(&mut ours, argument, &words);
            (known, ours.arguments.inner().get(argument).cloned())
        };

        let text = AMQPValue::LongString("quorum".into());
        let typed = says("x-queue-type", "the value 'quorum' of type 'longstr'");
        assert_eq!(typed, (true, Some(text)));
        let ten = AMQPValue::LongLongInt(10);
        let typed = says("x-expires", "the value '10' of type 'signedint'");
        assert_eq!(typed, (true, Some(ten.clone())));
        assert_eq!(says("x-max-priority", "'10'"), (true, Some(ten)));
        assert_eq!(says("x-max-priority", "none"), (true, None));
        assert_eq!(says("x-overflow", "unclear"), (false, None));
        assert_eq!(says("durable", "'false'"), (true, None));
        assert!(!ours.durable);
    }
}
