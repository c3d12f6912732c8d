//! An executor for tests and simulation: nothing runs unless somebody steps it.
//!
//! Ready jobs take turns in the order of their creation, so one program gives one schedule.
//! Timers follow the clock that was handed in; stepping never advances it.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::{Clock, Completion, Executor, Job, JobControl, JobHandle, Monotonic, Next};

/// Runs jobs only inside [`step_one`](Self::step_one) and [`run_until_idle`](Self::run_until_idle).
pub struct SteppedExecutor {
    clock: Arc<dyn Clock>,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    jobs: Vec<Slot>,
    blocking: VecDeque<Completion>,
    /// Index of the job that comes first in the next round.
    turn: usize,
}

struct Slot {
    name: String,
    /// Empty while the job is being stepped, and for ever once it was stopped.
    job: Option<Box<dyn Job>>,
    next: Next,
    stopped: bool,
}

impl SteppedExecutor {
    /// An executor whose timers follow `clock`.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            shared: Arc::default(),
        }
    }

    /// Runs one piece of blocking work or one step of one ready job, with its completions.
    /// Answers whether there was one.
    pub fn step_one(&self) -> bool {
        let work = lock(&self.shared).blocking.pop_front();
        if let Some(work) = work {
            work();
            return true;
        }
        let Some((index, mut job)) = self.take_ready() else {
            return false;
        };
        let step = job.step();
        for completion in step.completions {
            completion();
        }
        let mut shared = lock(&self.shared);
        let slot = &mut shared.jobs[index];
        if slot.stopped {
            drop(shared);
            drop(job);
            return true;
        }
        // A notification that came during the step has set `Again`, which wins.
        if slot.next == Next::Idle {
            slot.next = step.next;
        }
        slot.job = Some(job);
        true
    }

    /// Steps until no job is ready and no timer is due; answers the number of steps.
    ///
    /// # Panics
    /// After a million steps: a job that always asks to go on is a bug.
    pub fn run_until_idle(&self) -> usize {
        let mut steps = 0;
        while self.step_one() {
            steps += 1;
            assert!(
                steps < 1_000_000,
                "jobs never become idle: {:?}",
                self.ready_names()
            );
        }
        steps
    }

    /// The earliest time at which a job wants to be stepped, when none is ready now.
    pub fn next_timer(&self) -> Option<Monotonic> {
        let shared = lock(&self.shared);
        let timers = shared.jobs.iter().filter(|slot| slot.job.is_some());
        timers
            .filter_map(|slot| match slot.next {
                Next::At(time) => Some(time),
                Next::Again | Next::Idle => None,
            })
            .min()
    }

    fn take_ready(&self) -> Option<(usize, Box<dyn Job>)> {
        let now = self.clock.monotonic();
        let mut shared = lock(&self.shared);
        let count = shared.jobs.len();
        for distance in 0..count {
            let index = (shared.turn + distance) % count;
            let slot = &mut shared.jobs[index];
            if slot.job.is_some() && slot.is_ready(now) {
                let job = slot.job.take()?;
                slot.next = Next::Idle;
                shared.turn = (index + 1) % count;
                return Some((index, job));
            }
        }
        None
    }

    fn ready_names(&self) -> Vec<String> {
        let now = self.clock.monotonic();
        let shared = lock(&self.shared);
        let ready = shared.jobs.iter().filter(|slot| slot.is_ready(now));
        ready.map(|slot| slot.name.clone()).collect()
    }
}

impl Slot {
    fn is_ready(&self, now: Monotonic) -> bool {
        match self.next {
            Next::Again => true,
            Next::Idle => false,
            Next::At(time) => time <= now,
        }
    }
}

impl Executor for SteppedExecutor {
    fn spawn(&self, name: &str, job: Box<dyn Job>) -> JobHandle {
        let mut shared = lock(&self.shared);
        let index = shared.jobs.len();
        shared.jobs.push(Slot {
            name: name.to_owned(),
            job: Some(job),
            next: Next::Again,
            stopped: false,
        });
        JobHandle::new(Arc::new(Control {
            index,
            shared: Arc::downgrade(&self.shared),
        }))
    }

    fn run_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        lock(&self.shared).blocking.push_back(work);
    }
}

impl fmt::Debug for SteppedExecutor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SteppedExecutor")
    }
}

struct Control {
    index: usize,
    shared: Weak<Mutex<Shared>>,
}

impl JobControl for Control {
    fn notify(&self) {
        if let Some(shared) = self.shared.upgrade() {
            lock(&shared).jobs[self.index].next = Next::Again;
        }
    }

    fn stop(&self) {
        if let Some(shared) = self.shared.upgrade() {
            let mut shared = lock(&shared);
            let slot = &mut shared.jobs[self.index];
            slot.stopped = true;
            let job = slot.job.take();
            drop(shared);
            drop(job);
        }
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
