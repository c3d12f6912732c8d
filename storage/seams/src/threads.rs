//! The production executor: one named thread per job and a small pool for blocking work.

use std::collections::VecDeque;
use std::fmt;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, Thread};

use crate::{Clock, Completion, Executor, Job, JobControl, JobHandle, Next};

/// Threads for blocking work. Reads that miss memory wait for the disk, not for the processor, so
/// a few more than processors; more would only queue in the disk instead of here.
const BLOCKING_THREADS: usize = 4;

/// Runs each job on its own thread. A panic in a job or in blocking work aborts the process.
pub struct ThreadExecutor {
    clock: Arc<dyn Clock>,
    pool: Arc<Pool>,
}

impl ThreadExecutor {
    /// An executor whose timers follow `clock`, which must run in real time.
    ///
    /// # Panics
    /// When the system cannot start threads.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let pool = Arc::new(Pool::default());
        for number in 0..BLOCKING_THREADS {
            let pool = Arc::clone(&pool);
            start(&format!("blocking-{number}"), move || pool.run());
        }
        Self { clock, pool }
    }
}

impl Executor for ThreadExecutor {
    /// # Panics
    /// When the system cannot start a thread.
    fn spawn(&self, name: &str, job: Box<dyn Job>) -> JobHandle {
        let signals = Arc::new(Signals::default());
        let clock = Arc::clone(&self.clock);
        let inside = Arc::clone(&signals);
        let thread = start(name, move || run_job(job, &*clock, &inside));
        JobHandle::new(Arc::new(Control {
            signals,
            thread: thread.thread().clone(),
            join: Mutex::new(Some(thread)),
        }))
    }

    fn run_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        lock(&self.pool.queue).work.push_back(work);
        self.pool.arrived.notify_one();
    }
}

impl Drop for ThreadExecutor {
    fn drop(&mut self) {
        lock(&self.pool.queue).closed = true;
        self.pool.arrived.notify_all();
    }
}

impl fmt::Debug for ThreadExecutor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ThreadExecutor")
    }
}

/// What other threads tell a job's thread. Unparking after a store makes it see the store.
#[derive(Default)]
struct Signals {
    notified: AtomicBool,
    stopped: AtomicBool,
}

fn run_job(mut job: Box<dyn Job>, clock: &dyn Clock, signals: &Signals) {
    while !signals.stopped.load(Ordering::Acquire) {
        signals.notified.store(false, Ordering::SeqCst);
        let step = job.step();
        for completion in step.completions {
            completion();
        }
        wait(step.next, clock, signals);
    }
}

/// Returns when the next step is due.
#[expect(clippy::disallowed_methods, reason = "this is the executor seam")]
fn wait(next: Next, clock: &dyn Clock, signals: &Signals) {
    loop {
        if signals.notified.load(Ordering::SeqCst) || signals.stopped.load(Ordering::Acquire) {
            return;
        }
        match next {
            Next::Again => return,
            Next::Idle => thread::park(),
            Next::At(time) => {
                let left = time.saturating_duration_since(clock.monotonic());
                if left.is_zero() {
                    return;
                }
                thread::park_timeout(left);
            }
        }
    }
}

struct Control {
    signals: Arc<Signals>,
    thread: Thread,
    join: Mutex<Option<JoinHandle<()>>>,
}

impl JobControl for Control {
    fn notify(&self) {
        if !self.signals.notified.swap(true, Ordering::SeqCst) {
            self.thread.unpark();
        }
    }

    fn stop(&self) {
        self.signals.stopped.store(true, Ordering::Release);
        self.thread.unpark();
        if thread::current().id() == self.thread.id() {
            return;
        }
        // The lock is kept while joining, so that a second caller also returns only when the job
        // is gone.
        let mut join = lock(&self.join);
        if let Some(thread) = join.take() {
            // The thread cannot have panicked: a panic in it aborts the process.
            let _ = thread.join();
        }
    }
}

#[derive(Default)]
struct Pool {
    queue: Mutex<PoolQueue>,
    arrived: Condvar,
}

#[derive(Default)]
struct PoolQueue {
    work: VecDeque<Completion>,
    closed: bool,
}

impl Pool {
    /// Works until the executor is gone and the queue is empty.
    fn run(&self) {
        loop {
            let mut queue = lock(&self.queue);
            let work = loop {
                if let Some(work) = queue.work.pop_front() {
                    break work;
                }
                if queue.closed {
                    return;
                }
                queue = self
                    .arrived
                    .wait(queue)
                    .unwrap_or_else(PoisonError::into_inner);
            };
            drop(queue);
            work();
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the executor seam")]
fn start(name: &str, body: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    let label = name.to_owned();
    let guarded = move || {
        if catch_unwind(AssertUnwindSafe(body)).is_err() {
            // The panic hook has printed what happened; this says what becomes of the process.
            let _ = writeln!(
                std::io::stderr(),
                "kelp: job {label} panicked, ending the process"
            );
            std::process::abort();
        }
    };
    let thread = thread::Builder::new().name(name.to_owned()).spawn(guarded);
    thread.expect("a process that cannot start a thread cannot do its work")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
