//! Awaiting work that may block, without naming an async runtime.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::Executor;

/// The executor dropped the work before it ran, or the work panicked: the process is ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkLost;

impl std::fmt::Display for WorkLost {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("the executor ended before the work was done")
    }
}

impl std::error::Error for WorkLost {}

/// Runs `work` on the executor's blocking side and resolves to its value.
///
/// The work is handed over at once, before the first poll. Dropping the future does not take the
/// work back; its value is then dropped.
pub fn blocking<T: Send + 'static>(
    executor: &dyn Executor,
    work: impl FnOnce() -> T + Send + 'static,
) -> Blocking<T> {
    let slot = Arc::new(Mutex::new(Slot::Waiting(None)));
    let sender = Sender(Arc::clone(&slot));
    executor.run_blocking(Box::new(move || {
        let value = work();
        sender.settle(Slot::Done(value));
    }));
    Blocking { slot }
}

/// The future of [`blocking`].
#[derive(Debug)]
pub struct Blocking<T> {
    slot: Arc<Mutex<Slot<T>>>,
}

impl<T> Future for Blocking<T> {
    type Output = Result<T, WorkLost>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut slot = lock(&self.slot);
        if let Slot::Waiting(waker) = &mut *slot {
            *waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        match std::mem::replace(&mut *slot, Slot::Lost) {
            Slot::Done(value) => Poll::Ready(Ok(value)),
            Slot::Waiting(_) | Slot::Lost => Poll::Ready(Err(WorkLost)),
        }
    }
}

#[derive(Debug)]
enum Slot<T> {
    Waiting(Option<Waker>),
    Done(T),
    Lost,
}

/// Settles the slot exactly once, as lost when it is dropped without a value.
struct Sender<T>(Arc<Mutex<Slot<T>>>);

impl<T> Sender<T> {
    fn settle(&self, outcome: Slot<T>) {
        let mut slot = lock(&self.0);
        if !matches!(*slot, Slot::Waiting(_)) {
            return;
        }
        let before = std::mem::replace(&mut *slot, outcome);
        drop(slot);
        if let Slot::Waiting(Some(waker)) = before {
            waker.wake();
        }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        // After a value was set this finds the slot settled, or already read out, and does nothing.
        self.settle(Slot::Lost);
    }
}

fn lock<T>(slot: &Mutex<Slot<T>>) -> MutexGuard<'_, Slot<T>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
