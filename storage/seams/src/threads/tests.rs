use std::sync::mpsc;
use std::time::Duration;

use super::*;
use crate::{Step, SystemClock, blocking};

struct Send1(mpsc::Sender<&'static str>, Next);

impl Job for Send1 {
    fn step(&mut self) -> Step {
        let _ = self.0.send("step");
        let sender = self.0.clone();
        let completion: Completion = Box::new(move || {
            let _ = sender.send("completion");
        });
        Step {
            next: self.1,
            completions: vec![completion],
        }
    }
}

const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn a_job_is_stepped_at_spawn_and_after_each_notification() {
    let executor = ThreadExecutor::new(Arc::new(SystemClock::new()));
    let (sender, receiver) = mpsc::channel();
    let handle = executor.spawn("test-job", Box::new(Send1(sender, Next::Idle)));
    for _ in 0..3 {
        assert_eq!(receiver.recv_timeout(PATIENCE), Ok("step"));
        assert_eq!(receiver.recv_timeout(PATIENCE), Ok("completion"));
        handle.notify();
    }
    handle.stop();
    handle.stop();
    while receiver.recv_timeout(PATIENCE).is_ok() {}
    assert_eq!(
        receiver.try_recv(),
        Err(mpsc::TryRecvError::Disconnected),
        "the job is dropped"
    );
}

#[test]
fn a_timer_fires_without_notification() {
    let clock = Arc::new(SystemClock::new());
    let due = clock.monotonic() + Duration::from_millis(1);
    let executor = ThreadExecutor::new(clock);
    let (sender, receiver) = mpsc::channel();
    let handle = executor.spawn("timer-job", Box::new(Send1(sender, Next::At(due))));
    for _ in 0..4 {
        assert!(receiver.recv_timeout(PATIENCE).is_ok());
    }
    handle.stop();
}

#[test]
fn blocking_work_runs_on_another_thread() {
    let executor = ThreadExecutor::new(Arc::new(SystemClock::new()));
    let here = thread::current().id();
    let (sender, receiver) = mpsc::channel();
    drop(blocking(&executor, move || {
        sender.send(thread::current().id())
    }));
    assert_ne!(receiver.recv_timeout(PATIENCE).unwrap(), here);
}

struct StopSelf {
    own: mpsc::Receiver<JobHandle>,
    _alive: mpsc::Sender<()>,
}

impl Job for StopSelf {
    fn step(&mut self) -> Step {
        if let Ok(handle) = self.own.recv() {
            handle.stop();
        }
        Step::then(Next::Idle)
    }
}

#[test]
fn a_job_may_stop_itself() {
    let executor = ThreadExecutor::new(Arc::new(SystemClock::new()));
    let (give, own) = mpsc::channel();
    let (alive, gone) = mpsc::channel();
    let handle = executor.spawn("self-stop", Box::new(StopSelf { own, _alive: alive }));
    give.send(handle).unwrap();
    assert_eq!(
        gone.recv_timeout(PATIENCE),
        Err(mpsc::RecvTimeoutError::Disconnected)
    );
}
