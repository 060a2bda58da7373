//! [`Survived`]: the jobs that this process lost, but not by its own end.

use std::collections::{HashMap, VecDeque};

use uuid::Uuid;

const MOST_KEPT: usize = 10_000;

/// How often this process lost each job with its channel: a broker takes that for a crash.
#[derive(Debug, Default)]
pub(super) struct Survived {
    times: HashMap<Uuid, u32>,
    /// Oldest first.
    jobs: VecDeque<Uuid>,
}

impl Survived {
    /// A job is lost with its channel.
    pub(super) fn note(&mut self, job: Uuid) {
        if let Some(times) = self.times.get_mut(&job) {
            *times += 1;
            return;
        }
        if self.jobs.len() >= MOST_KEPT
            && let Some(oldest) = self.jobs.pop_front()
        {
            self.times.remove(&oldest);
        }
        self.jobs.push_back(job);
        self.times.insert(job, 1);
    }

    /// How often that was.
    pub(super) fn times(&self, job: Uuid) -> u32 {
        self.times.get(&job).copied().unwrap_or(0)
    }

    /// Whether that was, and not since this was asked last.
    pub(super) fn take(&mut self, job: Uuid) -> bool {
        let known = self.times.remove(&job).is_some();
        if known {
            self.jobs.retain(|it| *it != job);
        }
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_loss_is_known_and_the_oldest_are_forgotten() {
        let mut survived = Survived::default();
        let job = |number: usize| Uuid::from_u128(number as u128);

        for number in (0..=MOST_KEPT).chain([1, 1]) {
            survived.note(job(number));
        }

        assert_eq!([0, 1, 2].map(|it| survived.times(job(it))), [0, 3, 1]);
        assert!(survived.take(job(1)));
        assert!(!survived.take(job(1)));
        assert_eq!(survived.jobs.len(), survived.times.len());
    }
}
