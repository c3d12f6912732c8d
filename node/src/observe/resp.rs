//! Counters of the commands on the Redis port: plain atomics, added to where it happens and read
//! when somebody scrapes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::requests::{BUCKETS, bucket_of};
use crate::redis_port::COMMAND_NAMES;

/// One row for each command, and one for those that nobody knows.
const ROWS: usize = COMMAND_NAMES.len() + 1;

/// What the Redis port does.
pub struct RespMetrics {
    connections: AtomicUsize,
    commands: [AtomicU64; ROWS],
    errors: AtomicU64,
    buckets: [AtomicU64; BUCKETS],
    sum_nanos: AtomicU64,
}

/// One connection in the gauge, until it is dropped.
pub(crate) struct Connected {
    metrics: Arc<RespMetrics>,
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.metrics.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Default for RespMetrics {
    fn default() -> Self {
        Self {
            connections: AtomicUsize::new(0),
            commands: std::array::from_fn(|_| AtomicU64::new(0)),
            errors: AtomicU64::new(0),
            buckets: std::array::from_fn(|_| AtomicU64::new(0)),
            sum_nanos: AtomicU64::new(0),
        }
    }
}

impl RespMetrics {
    /// Counts a connection.
    pub(crate) fn connected(self: &Arc<Self>) -> Connected {
        self.connections.fetch_add(1, Ordering::Relaxed);
        Connected {
            metrics: Arc::clone(self),
        }
    }

    /// Counts a command that has got its reply, by its place among all commands; a place beyond
    /// them is that of unknown ones.
    pub(crate) fn finished(&self, command: usize, elapsed: Duration) {
        self.commands[command.min(ROWS - 1)].fetch_add(1, Ordering::Relaxed);
        let nanos = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        self.buckets[bucket_of(nanos)].fetch_add(1, Ordering::Relaxed);
        self.sum_nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    /// Counts an error reply.
    pub(crate) fn failed(&self) {
        self.errors.fetch_add(1, Ordering::Relaxed);
    }

    /// Open connections.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Commands with a reply.
    pub(crate) fn total(&self) -> u64 {
        self.by_command().map(|(_, count)| count).sum()
    }

    /// Commands with a reply, by name.
    pub(super) fn by_command(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let names = COMMAND_NAMES.iter().copied().chain(["unknown"]);
        let counts = self.commands.iter();
        names.zip(counts.map(|count| count.load(Ordering::Relaxed)))
    }

    pub(super) fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }

    /// The durations by bucket, and their sum.
    pub(super) fn durations(&self) -> ([u64; BUCKETS], u64) {
        let buckets = std::array::from_fn(|bucket| self.buckets[bucket].load(Ordering::Relaxed));
        (buckets, self.sum_nanos.load(Ordering::Relaxed))
    }
}
