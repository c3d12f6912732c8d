//! What the rest of the engine shares with the flush job.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use kelp_seams::JobHandle;

use super::install::{Answer, InstallRequest};
use crate::error::StorageError;
use crate::keyspace::Keyspace;
use crate::memtable::Reclaimer;
use crate::staging::StagedVersion;

/// Wakes the flush job, and gives it what cannot be seen in the keyspaces.
#[derive(Default)]
pub(crate) struct FlushControl {
    job: OnceLock<JobHandle>,
    reclaimer: Arc<Reclaimer>,
    counters: Counters,
    installs: Mutex<VecDeque<InstallRequest>>,
    closed: AtomicBool,
}

/// A snapshot of the counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlushMetrics {
    pub(crate) flushes: u64,
    pub(crate) bytes: u64,
    pub(crate) failures: u64,
    pub(crate) stalls: u64,
}

#[derive(Default)]
pub(crate) struct Counters {
    flushes: AtomicU64,
    bytes: AtomicU64,
    failures: AtomicU64,
    stalls: AtomicU64,
}

impl FlushControl {
    /// Names the job.
    pub(crate) fn attach(&self, job: JobHandle) {
        self.reclaimer.attach(job.clone());
        let _ = self.job.set(job);
    }

    /// Asks the job to look whether there is work.
    pub(crate) fn notify(&self) {
        if let Some(job) = self.job.get() {
            job.notify();
        }
    }

    /// Frees memtables.
    pub(crate) fn reclaimer(&self) -> &Arc<Reclaimer> {
        &self.reclaimer
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(crate) fn metrics(&self) -> FlushMetrics {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        FlushMetrics {
            flushes: read(&self.counters.flushes),
            bytes: read(&self.counters.bytes),
            failures: read(&self.counters.failures),
            stalls: read(&self.counters.stalls),
        }
    }

    /// Queues an install, or answers that it is too late.
    pub(crate) fn install(&self, keyspace: Keyspace, staged: StagedVersion, answer: Answer) {
        let request = InstallRequest::new(keyspace, staged, answer);
        let mut installs = self.installs();
        if self.is_closed() {
            drop(installs);
            return request.answer(Err(StorageError::Closed));
        }
        installs.push_back(request);
        drop(installs);
        self.notify();
    }

    /// The install that comes next.
    pub(super) fn take_install(&self) -> Option<InstallRequest> {
        self.installs().pop_front()
    }

    /// Whether an install of `keyspace` waits.
    pub(super) fn is_install_waiting(&self, keyspace: &Keyspace) -> bool {
        let installs = self.installs();
        installs.iter().any(|request| request.is_of(keyspace))
    }

    /// Whether the database is closed: nothing is flushed any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Ends all flushing: returns when the job is gone and every install that waited has its
    /// answer.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        if let Some(job) = self.job.get() {
            job.stop();
        }
        let waiting = std::mem::take(&mut *self.installs());
        for request in waiting {
            request.answer(Err(StorageError::Closed));
        }
        self.reclaimer.close();
    }

    fn installs(&self) -> MutexGuard<'_, VecDeque<InstallRequest>> {
        self.installs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counters {
    pub(super) fn count_flush(&self, bytes: u64) {
        self.flushes.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn count_failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// A keyspace ran out of room.
    pub(crate) fn count_stall(&self) {
        self.stalls.fetch_add(1, Ordering::Relaxed);
    }
}
