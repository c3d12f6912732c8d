//! Files that nobody needs any more, and the job that removes them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use kelp_seams::{Job, JobHandle, Next, Step};

use crate::file_number::FileNumber;
use crate::vfs::Vfs;

/// The queue of the remover, and a count of what waits for readers before it may enter.
#[derive(Default)]
pub(crate) struct DeadFiles {
    names: Mutex<Vec<String>>,
    job: OnceLock<JobHandle>,
    zombie_tables: AtomicU64,
    zombie_bytes: AtomicU64,
}

impl DeadFiles {
    /// Takes note of the job that empties the queue.
    pub(super) fn attach(&self, job: JobHandle) {
        // A catalog is opened once, so nobody was here before.
        let _ = self.job.set(job);
    }

    /// Counts a table that is dead and still held.
    pub(crate) fn note_dead(&self, bytes: u64) {
        self.zombie_tables.fetch_add(1, Ordering::Relaxed);
        self.zombie_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Takes a dead table that nobody holds any more.
    pub(crate) fn bury(&self, number: FileNumber, bytes: u64) {
        self.zombie_tables.fetch_sub(1, Ordering::Relaxed);
        self.zombie_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.remove([number.sstable_name()]);
    }

    /// Has files removed that nobody knows.
    pub(super) fn remove(&self, names: impl IntoIterator<Item = String>) {
        lock(&self.names).extend(names);
        if let Some(job) = self.job.get() {
            job.notify();
        }
    }

    /// Tables that are dead and still held, and their bytes.
    pub(super) fn zombies(&self) -> (u64, u64) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (read(&self.zombie_tables), read(&self.zombie_bytes))
    }

    /// Stops the job; files that are still in the queue are removed by the next open.
    pub(super) fn stop(&self) {
        if let Some(job) = self.job.get() {
            job.stop();
        }
    }
}

/// Removes dead files, one per step.
pub(super) struct Remover {
    pub(super) files: Arc<DeadFiles>,
    pub(super) vfs: Arc<dyn Vfs>,
    pub(super) directory: PathBuf,
}

impl Job for Remover {
    fn step(&mut self) -> Step {
        let Some(name) = lock(&self.files.names).pop() else {
            return Step::then(Next::Idle);
        };
        let path = self.directory.join(name);
        // A file that stays is harmless: the next open finds it unneeded and tries again.
        if let Err(error) = self.vfs.remove(&path) {
            tracing::warn!(path = %path.display(), %error, "cannot remove a dead file");
        }
        Step::then(Next::Again)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
