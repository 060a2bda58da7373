//! [`QueueState`] against a list that is sorted anew for every look.

use std::cmp::Reverse;

use proptest::{collection::vec, prelude::*};

use super::*;

const TOP: u8 = 5;

#[derive(Debug, Clone)]
enum Step {
    Push(u8),
    Hold(u8, u64),
    Pass(u64),
    Take,
    Settle(usize),
    GiveBack(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..8u8).prop_map(Step::Push),
        3 => (0..8u8, 0..6u64).prop_map(|(priority, delay)| Step::Hold(priority, delay)),
        2 => (0..4u64).prop_map(Step::Pass),
        4 => Just(Step::Take),
        1 => any::<usize>().prop_map(Step::Settle),
        2 => any::<usize>().prop_map(Step::GiveBack),
    ]
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    Pending,
    Held(u64),
    InHand,
    Gone,
}

#[derive(Debug, Clone)]
struct Job {
    id: usize,
    priority: u8,
    place: Place,
    expires: u64,
    redelivered: bool,
}

/// Every job there ever was, in order of arrival.
#[derive(Debug, Default)]
struct Model {
    ttl: Option<u64>,
    jobs: Vec<Job>,
    ids: usize,
    expired: u64,
}

impl Model {
    fn add(&mut self, priority: u8, place: Place, now: u64) -> usize {
        self.ids += 1;
        self.jobs.push(Job {
            id: self.ids,
            priority: priority.min(TOP),
            place,
            expires: self.ttl.map_or(u64::MAX, |ttl| now + ttl),
            redelivered: false,
        });
        self.ids
    }

    fn tick(&mut self, now: u64) {
        let is_due = |job: &mut Job| matches!(job.place, Place::Held(due) if due <= now);
        let mut due: Vec<Job> = self.jobs.extract_if(.., is_due).collect();
        due.sort_by_key(|job| match job.place {
            Place::Held(due) => due,
            _ => 0,
        });
        for mut job in due {
            if let (Some(ttl), Place::Held(due)) = (self.ttl, job.place) {
                job.expires = due + ttl;
            }
            job.place = Place::Pending;
            self.jobs.push(job);
        }
        for job in &mut self.jobs {
            if job.place == Place::Pending && job.expires <= now {
                job.place = Place::Gone;
                self.expired += 1;
            }
        }
    }

    fn pending(&self) -> Vec<usize> {
        let mut jobs: Vec<_> = self.all(|place| place == Place::Pending).collect();
        jobs.sort_by_key(|job| Reverse(job.priority));
        jobs.iter().map(|job| job.id).collect()
    }

    fn held(&self) -> Vec<(usize, u64)> {
        let mut jobs: Vec<_> = self
            .jobs
            .iter()
            .filter_map(|job| match job.place {
                Place::Held(due) => Some((job.id, due)),
                _ => None,
            })
            .collect();
        jobs.sort_by_key(|(_, due)| *due);
        jobs
    }

    fn all(&self, place: impl Fn(Place) -> bool) -> impl Iterator<Item = &Job> {
        self.jobs.iter().filter(move |job| place(job.place))
    }

    fn job(&mut self, id: usize) -> &mut Job {
        self.jobs.iter_mut().find(|job| job.id == id).unwrap()
    }
}

fn content(id: usize) -> Content {
    id.to_string().into_bytes().into()
}

fn id(job: &Content) -> usize {
    std::str::from_utf8(&job.body).unwrap().parse().unwrap()
}

fn seconds(now: u64) -> Duration {
    Duration::from_secs(now)
}

proptest! {
    #[test]
    fn a_queue_does_what_a_sorted_list_would(
        ttl in proptest::option::of(1..8u64),
        steps in vec(step(), 1..80),
    ) {
        let mut queue = QueueState::new(ttl.map(seconds), TOP);
        let mut model = Model { ttl, ..Model::default() };
        let mut in_hand: Vec<Taken> = Vec::new();
        let mut now = 0;

        for step in steps {
            match step {
                Step::Push(priority) => {
                    let id = model.add(priority, Place::Pending, now);
                    queue.push(content(id), priority, seconds(now));
                }
                Step::Hold(priority, delay) => {
                    let id = model.add(priority, Place::Held(now + delay), now);
                    queue.hold(content(id), priority, seconds(now + delay));
                }
                Step::Pass(time) => now += time,
                Step::Take => {
                    let next = model.pending().first().copied();
                    let taken = queue.take();
                    prop_assert_eq!(taken.as_ref().map(|taken| id(taken.content())), next);
                    if let Some(taken) = taken {
                        let job = model.job(id(taken.content()));
                        prop_assert_eq!(taken.redelivered(), job.redelivered);
                        job.place = Place::InHand;
                        in_hand.push(taken);
                    }
                }
                Step::Settle(index) if !in_hand.is_empty() => {
                    let taken = in_hand.swap_remove(index % in_hand.len());
                    model.job(id(&queue.settle(taken))).place = Place::Gone;
                }
                Step::GiveBack(index) if !in_hand.is_empty() => {
                    let taken = in_hand.swap_remove(index % in_hand.len());
                    let job = model.job(id(taken.content()));
                    job.place = Place::Pending;
                    job.redelivered = true;
                    queue.give_back(taken);
                }
                Step::Settle(_) | Step::GiveBack(_) => {}
            }
            queue.tick(seconds(now));
            model.tick(now);

            let pending: Vec<_> = queue.pending().map(id).collect();
            let held: Vec<_> = queue.held().map(|(job, due)| (id(job), due.as_secs())).collect();
            prop_assert_eq!(pending, model.pending());
            prop_assert_eq!(held, model.held());
            prop_assert_eq!(queue.in_hand(), in_hand.len());
            prop_assert_eq!(queue.expired(), model.expired);
            prop_assert!(queue.next_event().is_none_or(|event| event > seconds(now)));
        }
    }
}
