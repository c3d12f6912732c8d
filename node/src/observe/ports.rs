//! Gauges and counters of connections and of writes under way: plain atomics, added to where it
//! happens and read when somebody scrapes.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Why a client connection was turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoorReason {
    /// As many clients as the node takes are connected.
    Full,
    /// Too many connections have not said hello yet.
    Crowded,
    /// The client does not speak TLS and the port speaks nothing else.
    Plaintext,
}

impl DoorReason {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Full, Self::Crowded, Self::Plaintext];

    /// The reason as a label.
    pub fn label(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Crowded => "crowded",
            Self::Plaintext => "plaintext",
        }
    }
}

/// What the connections of a client port do and hold.
#[derive(Debug, Default)]
pub struct ConnectionMetrics {
    greeted: AtomicUsize,
    strangers: AtomicUsize,
    held_bytes: AtomicUsize,
    refused: [AtomicU64; DoorReason::ALL.len()],
}

impl ConnectionMetrics {
    /// Connections that have said hello.
    pub(crate) fn greeted(&self) -> &AtomicUsize {
        &self.greeted
    }

    /// Connections that have not said hello yet.
    pub(crate) fn strangers(&self) -> &AtomicUsize {
        &self.strangers
    }

    /// Bytes that all of them hold.
    pub(crate) fn held_bytes(&self) -> &AtomicUsize {
        &self.held_bytes
    }

    /// Counts a connection that was turned away.
    pub(crate) fn refused(&self, reason: DoorReason) {
        self.refused[reason as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// How many were turned away for this reason.
    pub(crate) fn refused_count(&self, reason: DoorReason) -> u64 {
        self.refused[reason as usize].load(Ordering::Relaxed)
    }
}

/// What the proposer's outbox has under way.
#[derive(Debug, Default)]
pub struct OutboxMetrics {
    unanswered: AtomicUsize,
    sent_again: AtomicU64,
    packed_entries: AtomicU64,
    packed_commands: AtomicU64,
}

impl OutboxMetrics {
    /// Notes how many sub-batches have been closed and not answered yet.
    pub(crate) fn set_unanswered(&self, count: usize) {
        self.unanswered.store(count, Ordering::Relaxed);
    }

    /// Counts sub-batches that are handed over not for the first time.
    pub(crate) fn count_sent_again(&self, count: u64) {
        self.sent_again.fetch_add(count, Ordering::Relaxed);
    }

    /// Counts a log entry that was packed from what waited here.
    pub(crate) fn count_packed(&self, commands: u64) {
        self.packed_entries.fetch_add(1, Ordering::Relaxed);
        self.packed_commands.fetch_add(commands, Ordering::Relaxed);
    }

    /// Log entries that this node has packed.
    pub(crate) fn packed_entries(&self) -> u64 {
        self.packed_entries.load(Ordering::Relaxed)
    }

    /// Commands in the log entries that this node has packed.
    pub(crate) fn packed_commands(&self) -> u64 {
        self.packed_commands.load(Ordering::Relaxed)
    }

    /// Sub-batches closed and not answered yet.
    pub(crate) fn unanswered(&self) -> usize {
        self.unanswered.load(Ordering::Relaxed)
    }

    /// Hand-overs of sub-batches that had been handed over before.
    pub(crate) fn sent_again(&self) -> u64 {
        self.sent_again.load(Ordering::Relaxed)
    }
}
