//! Waits, without blocking, until the write-ahead log is durable.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::FlushControl;
use crate::error::StorageError;
use crate::wal::Wal;

/// Everything that was submitted to the log before it was made becomes durable.
pub(super) struct LogWait {
    outcome: Arc<Mutex<Option<Result<(), StorageError>>>>,
}

impl LogWait {
    /// Asks for what was submitted so far; the flush job is notified when the answer is there.
    pub(super) fn start(wal: &Wal, control: &Arc<FlushControl>) -> Self {
        let outcome = Arc::new(Mutex::new(None));
        let (inside, control) = (Arc::clone(&outcome), Arc::clone(control));
        let answer = Box::new(move |result| {
            *lock(&inside) = Some(result);
            control.notify();
        });
        if let Err(refused) = wal.submit(Some(answer), |_| ()) {
            *lock(&outcome) = Some(Err(refused.error));
        }
        Self { outcome }
    }

    /// None while it waits.
    pub(super) fn outcome(&self) -> Option<Result<(), StorageError>> {
        lock(&self.outcome).clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
