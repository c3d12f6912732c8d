//! What background work looks like: jobs, steps and the executor that runs them.

use std::fmt;
use std::sync::Arc;

use crate::Monotonic;

/// What a step wants done once its work has taken effect, in order.
pub type Completion = Box<dyn FnOnce() + Send>;

/// When a job wants its next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// At once: there is more to do.
    Again,
    /// When it is notified.
    Idle,
    /// At this time, or earlier when it is notified.
    At(Monotonic),
}

/// What a step answers.
pub struct Step {
    /// When to step again.
    pub next: Next,
    /// Run by the executor after the step: at once in production, after simulated time in
    /// simulation.
    pub completions: Vec<Completion>,
}

impl Step {
    /// A step without completions.
    pub const fn then(next: Next) -> Self {
        Self {
            next,
            completions: Vec::new(),
        }
    }
}

impl fmt::Debug for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Step")
            .field("next", &self.next)
            .field("completions", &self.completions.len())
            .finish()
    }
}

/// A piece of background work.
///
/// Invariants: a step does a bounded amount of work; it never waits for another job; a job that
/// answers [`Next::Idle`] is stepped again after any later notification.
pub trait Job: Send + 'static {
    /// Does the next piece of work.
    fn step(&mut self) -> Step;
}

/// Runs jobs and blocking work.
pub trait Executor: Send + Sync + 'static {
    /// Starts `job`: it is stepped at once, and then as it asks or is notified. A panic in a job
    /// ends the process, since nobody could tell what the job left half done.
    fn spawn(&self, name: &str, job: Box<dyn Job>) -> JobHandle;

    /// Runs `work` where blocking, such as a read from the disk, harms nobody.
    fn run_blocking(&self, work: Box<dyn FnOnce() + Send>);
}

/// What an executor provides behind a [`JobHandle`].
pub trait JobControl: Send + Sync {
    /// Asks for a step soon; cheap, and several calls may give one step.
    fn notify(&self);

    /// Lets the running step end, drops the job and returns when it is gone. From inside the job
    /// itself it returns at once and the job is dropped after the step.
    fn stop(&self);
}

/// A running job. Clones refer to the same job; dropping handles does not stop it.
#[derive(Clone)]
pub struct JobHandle(Arc<dyn JobControl>);

impl JobHandle {
    /// A handle on what an executor runs.
    pub fn new(control: Arc<dyn JobControl>) -> Self {
        Self(control)
    }

    /// Asks for a step soon; cheap, and several calls may give one step.
    pub fn notify(&self) {
        self.0.notify();
    }

    /// Lets the running step end, drops the job and returns when it is gone. From inside the job
    /// itself it returns at once and the job is dropped after the step. Stopping twice is fine.
    pub fn stop(&self) {
        self.0.stop();
    }
}

impl fmt::Debug for JobHandle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JobHandle")
    }
}
