//! The write-ahead log: one sequence of records for all logs of a database.
//!
//! Logs submit records into a [`Queue`](queue::Queue); the flusher writes all that waits with one
//! write and one sync and then runs the callbacks in order. The keeper makes the next file and
//! removes dead ones. Recovery replays the files and draws the line between a torn tail and
//! corruption. Which records there are is in [`record`], their bytes in [`format`](mod@format).
//!
//! ```text
//! append -> Queue (places, bytes, callbacks) -> flusher: write, sync, callbacks -> files
//!                                                        open: recover <-----------'
//! ```

pub(crate) mod files;
pub(crate) mod flusher;
pub(crate) mod format;
pub(crate) mod queue;
pub(crate) mod record;
pub(crate) mod recover;
mod scan;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use kelp_seams::JobHandle;

use self::files::WalFiles;
use self::queue::{Queue, Status};
use crate::error::StorageError;
use crate::log::Durable;
use crate::metrics::Counters;

/// The shared side of the write-ahead log.
pub(crate) struct Wal {
    queue: Mutex<Queue>,
    pub(crate) files: Arc<WalFiles>,
    pub(crate) counters: Arc<Counters>,
    flusher: OnceLock<JobHandle>,
    keeper: OnceLock<JobHandle>,
}

/// A submission that was not taken, with the callback to run once no lock is held.
pub(crate) struct Refused {
    pub(crate) error: StorageError,
    pub(crate) on_durable: Option<Durable>,
}

impl Wal {
    pub(crate) fn new(queue: Queue, files: Arc<WalFiles>, counters: Arc<Counters>) -> Self {
        Self {
            queue: Mutex::new(queue),
            files,
            counters,
            flusher: OnceLock::new(),
            keeper: OnceLock::new(),
        }
    }

    /// Starts the background work.
    pub(crate) fn attach(&self, flusher: JobHandle, keeper: JobHandle) {
        let _ = self.flusher.set(flusher);
        let _ = self.keeper.set(keeper);
    }

    /// Lets `push` put records into the queue. With a callback the flusher is told at once;
    /// without one the records ride along with the next group, or are written when the log is
    /// idle.
    pub(crate) fn submit<T>(
        &self,
        on_durable: Option<Durable>,
        push: impl FnOnce(&mut Queue) -> T,
    ) -> Result<T, Refused> {
        let mut queue = self.lock();
        if let Err(error) = queue.status.check() {
            return Err(Refused { error, on_durable });
        }
        let before = queue.waiting_bytes();
        let pushed = push(&mut queue);
        self.counters.queued(queue.waiting_bytes() - before);
        let wake = on_durable.is_some() || !queue.timer_armed;
        queue.timer_armed = true;
        if let Some(callback) = on_durable {
            queue.on_durable(callback);
        }
        drop(queue);
        if wake {
            self.notify_flusher();
        }
        Ok(pushed)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Queue> {
        // No code panics with the lock held but by a broken invariant, which ends the process.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn notify_flusher(&self) {
        if let Some(flusher) = self.flusher.get() {
            flusher.notify();
        }
    }

    pub(crate) fn notify_keeper(&self) {
        if let Some(keeper) = self.keeper.get() {
            keeper.notify();
        }
    }

    /// Stops the background work and returns when it is gone.
    pub(crate) fn stop_jobs(&self) {
        for job in [self.flusher.get(), self.keeper.get()]
            .into_iter()
            .flatten()
        {
            job.stop();
        }
    }

    /// Refuses everything from now on. Answers the callbacks that will never succeed.
    pub(crate) fn poison(&self, error: io::Error) -> (StorageError, Vec<Durable>) {
        let mut queue = self.lock();
        let error = Arc::new(error);
        queue.status = Status::Poisoned(Arc::clone(&error));
        self.counters.set_poisoned();
        (StorageError::Poisoned(error), queue.take_callbacks())
    }
}
