//! The vocabulary of logs: numbers, indexes, positions, entries.

use std::fmt;

use bytes::Bytes;

use crate::error::StorageError;

/// Names a log of a database; Raft groups use their group number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogNumber(u32);

impl LogNumber {
    /// The log `number`.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The bare number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for LogNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The index of an entry in its log; 0 is a real index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogIndex(u64);

impl LogIndex {
    /// The index `index`.
    pub const fn new(index: u64) -> Self {
        Self(index)
    }

    /// The bare index.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The index after this one.
    ///
    /// # Panics
    /// At the end of the 64-bit range, which no log lives to see.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(
            self.0
                .checked_add(1)
                .expect("a log never holds 2^64 entries"),
        )
    }

    /// The index before this one; none before 0.
    #[must_use]
    pub const fn previous(self) -> Option<Self> {
        match self.0.checked_sub(1) {
            Some(index) => Some(Self(index)),
            None => None,
        }
    }
}

impl fmt::Display for LogIndex {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Who proposed an entry; opaque to storage, compared for equality only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryTerm {
    /// Raft's term.
    pub term: u64,
    /// The leader of that term.
    pub leader: u64,
}

/// A place in a log, and which entry was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogPosition {
    /// The index.
    pub index: LogIndex,
    /// Who proposed the entry there.
    pub term: EntryTerm,
}

/// An entry of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Its index.
    pub index: LogIndex,
    /// Who proposed it.
    pub term: EntryTerm,
    /// What it says; opaque to storage.
    pub payload: Bytes,
}

impl LogEntry {
    /// Its place.
    pub const fn position(&self) -> LogPosition {
        LogPosition {
            index: self.index,
            term: self.term,
        }
    }
}

/// Runs exactly once: with `Ok` when the data is durable, with an error when that will never be
/// known. Callbacks run in the order of submission, on the flusher's thread; when a call itself
/// fails, they run with the same error before it returns.
pub type Durable = Box<dyn FnOnce(Result<(), StorageError>) + Send>;
