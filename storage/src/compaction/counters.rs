//! What compaction counts.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::codec::long;
use crate::metrics::StorageMetrics;

/// The live counters of the job. Statistics only: no decision rests on their order.
#[derive(Debug, Default)]
pub(crate) struct CompactionCounters {
    compactions: AtomicU64,
    read_bytes: AtomicU64,
    written_bytes: AtomicU64,
    failures: AtomicU64,
    halted: AtomicU64,
    debt: AtomicU64,
}

impl CompactionCounters {
    pub(super) fn done(&self, read_bytes: u64, written_bytes: u64) {
        self.compactions.fetch_add(1, Ordering::Relaxed);
        self.read_bytes.fetch_add(read_bytes, Ordering::Relaxed);
        self.written_bytes
            .fetch_add(written_bytes, Ordering::Relaxed);
    }

    pub(super) fn failed(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn set_halted(&self, keyspaces: usize) {
        self.halted.store(long(keyspaces), Ordering::Relaxed);
    }

    pub(super) fn set_debt(&self, bytes: u64) {
        self.debt.store(bytes, Ordering::Relaxed);
    }

    /// Fills in what compaction counts.
    pub(crate) fn fill(&self, metrics: &mut StorageMetrics) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        metrics.compactions = read(&self.compactions);
        metrics.compaction_read_bytes = read(&self.read_bytes);
        metrics.compaction_written_bytes = read(&self.written_bytes);
        metrics.compaction_failures = read(&self.failures);
        metrics.compaction_halted_keyspaces = read(&self.halted);
        metrics.compaction_debt_bytes = read(&self.debt);
    }
}
