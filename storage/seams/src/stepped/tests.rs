use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::*;
use crate::{ManualClock, Step};

/// Counts its steps and answers what it was told to.
struct Counter {
    steps: Arc<AtomicUsize>,
    answer: Box<dyn FnMut(usize) -> Step + Send>,
}

impl Job for Counter {
    fn step(&mut self) -> Step {
        let count = self.steps.fetch_add(1, Ordering::SeqCst) + 1;
        (self.answer)(count)
    }
}

fn counter(answer: impl FnMut(usize) -> Step + Send + 'static) -> (Arc<AtomicUsize>, Box<Counter>) {
    let steps = Arc::new(AtomicUsize::new(0));
    (
        Arc::clone(&steps),
        Box::new(Counter {
            steps,
            answer: Box::new(answer),
        }),
    )
}

#[test]
fn idle_jobs_run_at_spawn_and_when_notified() {
    let executor = SteppedExecutor::new(Arc::new(ManualClock::new()));
    let (steps, job) = counter(|_| Step::then(Next::Idle));
    let handle = executor.spawn("idle", job);
    assert_eq!(executor.run_until_idle(), 1);
    handle.notify();
    handle.notify();
    assert_eq!(executor.run_until_idle(), 1);
    assert_eq!(steps.load(Ordering::SeqCst), 2);
}

#[test]
fn timers_wait_for_the_clock() {
    let clock = Arc::new(ManualClock::new());
    let executor = SteppedExecutor::new(Arc::clone(&clock) as Arc<dyn Clock>);
    let due = Monotonic::from_nanos(1_000);
    let (_, job) = counter(move |count| {
        Step::then(if count == 1 {
            Next::At(due)
        } else {
            Next::Idle
        })
    });
    executor.spawn("timer", job);
    assert_eq!(executor.run_until_idle(), 1);
    assert_eq!(executor.next_timer(), Some(due));
    clock.advance(Duration::from_micros(1));
    assert_eq!(executor.run_until_idle(), 1);
    assert_eq!(executor.next_timer(), None);
}

#[test]
fn ready_jobs_take_turns() {
    let executor = SteppedExecutor::new(Arc::new(ManualClock::new()));
    let order = Arc::new(Mutex::new(Vec::new()));
    for name in ["a", "b"] {
        let order = Arc::clone(&order);
        let (_, job) = counter(move |count| {
            order.lock().unwrap().push(name);
            Step::then(if count < 2 { Next::Again } else { Next::Idle })
        });
        executor.spawn(name, job);
    }
    executor.run_until_idle();
    assert_eq!(*order.lock().unwrap(), ["a", "b", "a", "b"]);
}

#[test]
fn a_job_that_stops_itself_is_dropped_after_its_step() {
    let executor = SteppedExecutor::new(Arc::new(ManualClock::new()));
    let own: Arc<Mutex<Option<JobHandle>>> = Arc::default();
    let inside = Arc::clone(&own);
    let (steps, job) = counter(move |_| {
        if let Some(handle) = inside.lock().unwrap().as_ref() {
            handle.stop();
        }
        Step::then(Next::Again)
    });
    *own.lock().unwrap() = Some(executor.spawn("suicidal", job));
    assert_eq!(executor.run_until_idle(), 1);
    assert_eq!(Arc::strong_count(&steps), 1, "the job is gone");
}

#[test]
fn completions_run_after_the_step() {
    let executor = SteppedExecutor::new(Arc::new(ManualClock::new()));
    let done = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&done);
    let (_, job) = counter(move |_| {
        assert_eq!(seen.load(Ordering::SeqCst), 0);
        let seen = Arc::clone(&seen);
        let completion: Completion = Box::new(move || {
            seen.fetch_add(1, Ordering::SeqCst);
        });
        Step {
            next: Next::Idle,
            completions: vec![completion],
        }
    });
    executor.spawn("completing", job);
    executor.run_until_idle();
    assert_eq!(done.load(Ordering::SeqCst), 1);
}
