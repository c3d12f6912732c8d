//! Files that nobody needs any more, and the job that removes them.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use kelp_seams::{Job, JobHandle, Next, Step};

use crate::file_number::FileNumber;
use crate::vfs::Vfs;

/// The queue of the remover, and a count of what waits for readers before it may enter.
#[derive(Default)]
pub(crate) struct DeadFiles {
    queue: Mutex<Queue>,
    job: OnceLock<JobHandle>,
    zombie_tables: AtomicU64,
    zombie_bytes: AtomicU64,
}

#[derive(Default)]
struct Queue {
    /// Files that the job may remove.
    ready: Vec<String>,
    /// Files that an edit names which a crash may bring back, though it failed.
    in_doubt: BTreeSet<String>,
    /// Those of them that are to be removed once that is certain.
    held: Vec<String>,
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
        let mut queue = lock(&self.queue);
        for name in names {
            if queue.in_doubt.contains(&name) {
                queue.held.push(name);
            } else {
                queue.ready.push(name);
            }
        }
        drop(queue);
        self.notify();
    }

    /// Keeps the files `names` until [`DeadFiles::release`]: a crash might bring back an edit that
    /// needs them. All others still go, so that a manifest that fails because the disk is full does
    /// not keep it full.
    pub(super) fn doubt(&self, names: impl IntoIterator<Item = String>) {
        lock(&self.queue).in_doubt.extend(names);
    }

    /// Lets the held files go, and `unneeded` with them.
    pub(super) fn release(&self, unneeded: Vec<String>) {
        let mut queue = lock(&self.queue);
        queue.in_doubt.clear();
        let held = std::mem::take(&mut queue.held);
        queue.ready.extend(held.into_iter().chain(unneeded));
        drop(queue);
        self.notify();
    }

    fn notify(&self) {
        if let Some(job) = self.job.get() {
            job.notify();
        }
    }

    fn next(&self) -> Option<String> {
        lock(&self.queue).ready.pop()
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
        let Some(name) = self.files.next() else {
            return Step::then(Next::Idle);
        };
        let path = self.directory.join(name);
        // A file that stays is harmless: the next open finds it unneeded and tries again.
        if let Err(error) = self.vfs.remove(&path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %path.display(), %error, "cannot remove a dead file");
        }
        Step::then(Next::Again)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
