//! Jobs and queues of both libraries at once: their derives read the same attributes.

/// A job both libraries know by the same name, on the same queue.
pub trait Job:
    queuey::Job<Queue = Self::Queues> + queuey_rabbitmq::Job<Queue = Self::Queues>
{
    type Queues: queuey::QueueSet + queuey_rabbitmq::QueueSet;

    fn new(note: &str) -> Self;
    fn note(&self) -> &str;

    fn queue() -> &'static str {
        queuey::QueueSet::name(&<Self as queuey::Job>::QUEUE)
    }
}

/// One queue and one job type for each of these names.
macro_rules! fleet {
    ($fleet:ident, $prefix:literal, $($name:ident)+) => {
        pub mod $fleet {
            use serde::{Deserialize, Serialize};

            #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, queuey::Queues, queuey_rabbitmq::Queues)]
            #[queues(prefix = $prefix)]
            pub enum Fleet {
                $(
                    #[queue(prefetch = 1, retry(max_attempts = 3, backoff = "fixed", delay = "1s"))]
                    $name,
                )+
            }

            $(
                #[derive(Debug, Serialize, Deserialize, queuey::Job, queuey_rabbitmq::Job)]
                #[job(queue = Fleet::$name)]
                pub struct $name {
                    // Not in the order of the alphabet, which one of the two sorts by.
                    note: String,
                    amount: f64,
                }

                impl super::Job for $name {
                    type Queues = Fleet;

                    fn new(note: &str) -> Self {
                        Self { note: note.into(), amount: 0.1 }
                    }

                    fn note(&self) -> &str {
                        &self.note
                    }
                }
            )+
        }
    };
}

fleet!(from_them, "peers.from_them", Enqueued Retried Deferred Dead Failed Message Letter);
fleet!(from_us, "peers.from_us", Enqueued Retried Deferred Dead Failed Message Letter);
