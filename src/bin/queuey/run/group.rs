//! [`Group`]: the processes of one program.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use async_io::Timer;
use async_process::Child;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

/// How often is looked whether all of a group have ended.
const LOOK: Duration = Duration::from_millis(50);

/// The processes of one program. Dropped before the program [is over](Self::is_over), it kills them.
#[derive(Debug)]
pub(super) struct Group {
    leader: Option<Pid>,
    over: AtomicBool,
}

impl Group {
    pub(super) fn of(child: &Child) -> Self {
        Self {
            leader: i32::try_from(child.id()).ok().and_then(Pid::from_raw),
            over: AtomicBool::new(false),
        }
    }

    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Nothing of it is to be ended any more: what is left, it has left behind on purpose.
    pub(super) fn is_over(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Returns once `child`, its first process, and all others have ended.
    pub(super) async fn gone(&self, child: &mut Child) {
        let _ = child.status().await;
        while self
            .leader
            .is_some_and(|it| test_kill_process_group(it).is_ok())
        {
            Timer::after(LOOK).await;
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(leader) = self.leader {
            let _ = kill_process_group(leader, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !*self.over.get_mut() {
            self.kill();
        }
    }
}
