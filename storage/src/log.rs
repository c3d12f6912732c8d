//! Logs: contiguous entries with a vote and a committed position, for Raft or the like.
//!
//! A log lives in the write-ahead log of its database, not in a keyspace: an entry is written once
//! and read from where it was written. In memory are the place of every entry and the bytes of the
//! newest ones. Storage knows nothing of Raft: terms and votes are opaque, and only their order of
//! submission counts.

mod replay;
mod state;
mod types;

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

pub(crate) use self::replay::ReplayLogs;
pub(crate) use self::state::LogState;
pub use self::types::{Durable, EntryTerm, LogEntry, LogIndex, LogNumber, LogPosition};
use crate::error::StorageError;
use crate::wal::Wal;
use crate::wal::files::Located;
use crate::wal::format::{RECORD_BYTES_MAX, record_check};
use crate::wal::record::{APPEND_PREFIX_BYTES, Record, StoredVote, VOTE_BYTES_MAX, append_prefix};

/// The largest payload of an entry: with its header it must fit one frame of the log.
pub const ENTRY_BYTES_MAX: usize = RECORD_BYTES_MAX - APPEND_PREFIX_BYTES;

/// A handle of one log; clones share it and keep its database open.
///
/// Invariants: entries are contiguous and all of `first..=last` are present; an entry can be read
/// as soon as `append` returns, though it may not be durable yet; what is durable is always a
/// prefix of what was submitted, over all logs of the database.
#[derive(Clone)]
pub struct Log {
    shared: Arc<LogShared>,
    /// Keeps the database open.
    _database: Arc<dyn Send + Sync>,
}

/// What the handles of a log share.
pub(crate) struct LogShared {
    number: LogNumber,
    state: Mutex<LogState>,
    wal: Arc<Wal>,
    hot_bytes_max: usize,
}

impl LogShared {
    pub(crate) fn new(
        number: LogNumber,
        state: LogState,
        wal: Arc<Wal>,
        hot_bytes_max: usize,
    ) -> Self {
        Self {
            number,
            state: Mutex::new(state),
            wal,
            hot_bytes_max,
        }
    }

    fn lock(&self) -> MutexGuard<'_, LogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log {
    pub(crate) fn new(shared: Arc<LogShared>, database: Arc<dyn Send + Sync>) -> Self {
        Self {
            shared,
            _database: database,
        }
    }

    /// The number of the log.
    pub fn number(&self) -> LogNumber {
        self.shared.number
    }

    /// Adds entries at the end. They are readable when this returns and durable when `on_durable`
    /// runs with `Ok`. Without entries, `on_durable` runs once everything before is durable. Never
    /// waits for the disk.
    ///
    /// # Errors
    /// [`StorageError::NotContiguous`], [`StorageError::TooLarge`]: nothing was added.
    /// [`StorageError::Poisoned`], [`StorageError::Closed`]: nothing will be written any more. In
    /// each case `on_durable` has run with the same error.
    pub fn append(&self, entries: Vec<LogEntry>, on_durable: Durable) -> Result<(), StorageError> {
        let checks = match check_entries(self.shared.number, &entries) {
            Ok(checks) => checks,
            Err(error) => return refuse(error, Some(on_durable)),
        };
        let mut state = self.shared.lock();
        if let Some(first) = entries.first()
            && let Err(error) = state.check_continues(first.index)
        {
            drop(state);
            return refuse(error, Some(on_durable));
        }
        let (number, written) = (self.shared.number, self.shared.wal.files.written());
        let submitted = self.shared.wal.submit(Some(on_durable), |queue| {
            for (entry, check) in entries.into_iter().zip(checks) {
                let position = entry.position();
                let prefix = append_prefix(number, position);
                let place = queue.push_append(prefix.as_slice(), &entry.payload, check);
                let known = queue.head(number);
                let first = known.head.entries.map_or(position, |(first, _)| first);
                if known.head.entries.is_none() {
                    known.first_lsn = place.lsn;
                }
                known.head.entries = Some((first, position));
                state.append(position, place);
                state.push_hot(entry.payload);
            }
        });
        state.evict(self.shared.hot_bytes_max, written);
        drop(state);
        submitted.or_else(|refused| refuse(refused.error, refused.on_durable))
    }

    /// Removes the entries from `from` on, for readers at once. Durable no later than anything
    /// submitted afterwards; nothing when there are none.
    ///
    /// # Errors
    /// [`StorageError::Poisoned`], [`StorageError::Closed`]: nothing will be written any more.
    pub fn truncate_suffix(&self, from: LogIndex) -> Result<(), StorageError> {
        let mut state = self.shared.lock();
        if state.last().is_none_or(|last| last.index < from) {
            return Ok(());
        }
        let number = self.shared.number;
        let submitted = self.shared.wal.submit(None, |queue| {
            queue.push(number, &Record::TruncateSuffix { from });
            state.truncate_suffix(from);
            queue.head(number).head.entries = state.first().zip(state.last());
        });
        drop(state);
        submitted.map_err(|refused| refused.error)
    }

    /// Removes the entries up to `through` and remembers it as purged. `through` may lie beyond
    /// the last entry: the log is then empty and continues after it. Nothing when as much was
    /// purged before. The space is given back later.
    ///
    /// # Errors
    /// [`StorageError::Poisoned`], [`StorageError::Closed`]: nothing will be written any more.
    pub fn discard_prefix(&self, through: LogPosition) -> Result<(), StorageError> {
        let mut state = self.shared.lock();
        if state
            .purged
            .is_some_and(|purged| purged.index >= through.index)
        {
            return Ok(());
        }
        let number = self.shared.number;
        let submitted = self.shared.wal.submit(None, |queue| {
            queue.push(number, &Record::DiscardPrefix { through });
            state.discard_prefix(through);
            let known = queue.head(number);
            known.head.purged = Some(through);
            known.head.entries = state.first().zip(state.last());
            known.first_lsn = state.first_lsn().unwrap_or_default();
        });
        drop(state);
        submitted.map_err(|refused| refused.error)
    }

    /// Replaces the vote, which is opaque. Readable at once; durable, in the write-ahead log and
    /// in HARDSTATE, when `on_durable` runs with `Ok`.
    ///
    /// # Errors
    /// As [`append`](Self::append); a vote may have 64 bytes.
    pub fn put_vote(&self, vote: &[u8], on_durable: Durable) -> Result<(), StorageError> {
        if vote.len() > VOTE_BYTES_MAX {
            let error = too_large("vote", vote.len(), VOTE_BYTES_MAX);
            return refuse(error, Some(on_durable));
        }
        let mut state = self.shared.lock();
        let sequence = state.vote.as_ref().map_or(0, |stored| stored.sequence) + 1;
        let stored = StoredVote {
            sequence,
            vote: Bytes::copy_from_slice(vote),
        };
        let number = self.shared.number;
        let submitted = self.shared.wal.submit(Some(on_durable), |queue| {
            queue.head(number).head.vote = Some(stored.clone());
            queue.push(number, &Record::PutVote(stored.clone()));
            state.vote = Some(stored);
        });
        drop(state);
        submitted.or_else(|refused| refuse(refused.error, refused.on_durable))
    }

    /// Replaces the committed position. Durable no later than anything submitted afterwards, and
    /// never before the entries submitted before it.
    ///
    /// # Errors
    /// [`StorageError::Poisoned`], [`StorageError::Closed`]: nothing will be written any more.
    pub fn put_committed(&self, committed: LogPosition) -> Result<(), StorageError> {
        let mut state = self.shared.lock();
        if state.committed == Some(committed) {
            return Ok(());
        }
        let number = self.shared.number;
        let submitted = self.shared.wal.submit(None, |queue| {
            queue.push(number, &Record::PutCommitted(committed));
            queue.head(number).head.committed = Some(committed);
            state.committed = Some(committed);
        });
        drop(state);
        submitted.map_err(|refused| refused.error)
    }

    /// The last vote put.
    pub fn vote(&self) -> Option<Bytes> {
        self.shared
            .lock()
            .vote
            .as_ref()
            .map(|stored| stored.vote.clone())
    }

    /// The last committed position put.
    pub fn committed(&self) -> Option<LogPosition> {
        self.shared.lock().committed
    }

    /// The last position discarded.
    pub fn purged(&self) -> Option<LogPosition> {
        self.shared.lock().purged
    }

    /// The first entry present.
    pub fn first(&self) -> Option<LogPosition> {
        self.shared.lock().first()
    }

    /// The last entry present.
    pub fn last(&self) -> Option<LogPosition> {
        self.shared.lock().last()
    }

    /// The entry present at `index`; from memory.
    pub fn position(&self, index: LogIndex) -> Option<LogPosition> {
        self.shared.lock().position(index)
    }

    /// The bytes that the entries present take on the disk.
    pub fn bytes(&self) -> u64 {
        self.shared.lock().bytes()
    }

    /// The bytes that the entries of `range` take on the disk, as far as they are present.
    pub fn bytes_in(&self, range: Range<LogIndex>) -> u64 {
        self.shared.lock().bytes_in(range)
    }

    /// The first of the newest entries that take at least `bytes` together; the first present when
    /// all of them take less, none in an empty log.
    pub fn newest_from(&self, bytes: u64) -> Option<LogIndex> {
        self.shared.lock().newest_from(bytes)
    }

    /// The entries of `range` that are present, from its start without a hole, cut before the
    /// payloads exceed `bytes_max` but with at least one if there is one. Empty when the first is
    /// not present. May read the disk.
    ///
    /// # Errors
    /// [`StorageError::Corruption`]: an entry is not what was written. [`StorageError::Io`].
    pub fn read(
        &self,
        range: Range<LogIndex>,
        bytes_max: usize,
    ) -> Result<Vec<LogEntry>, StorageError> {
        let planned: Vec<Planned> = self.plan(range, bytes_max);
        let number = self.shared.number;
        planned
            .into_iter()
            .map(|planned| {
                let payload = match planned.source {
                    Source::Hot(payload) => payload,
                    Source::Cold(located) => located.read_entry(number, planned.position)?,
                };
                let LogPosition { index, term } = planned.position;
                Ok(LogEntry {
                    index,
                    term,
                    payload,
                })
            })
            .collect()
    }

    /// Like [`read`](Self::read), but from memory alone; none when the disk is needed.
    pub fn read_cached(&self, range: Range<LogIndex>, bytes_max: usize) -> Option<Vec<LogEntry>> {
        let state = self.shared.lock();
        let mut entries = Vec::new();
        for index in state.select(range, bytes_max) {
            let payload = state.hot(index)?.clone();
            let LogPosition { index, term } = state.position(index)?;
            entries.push(LogEntry {
                index,
                term,
                payload,
            });
        }
        Some(entries)
    }

    /// Decides under the lock where each entry comes from; files stay readable through their
    /// handles, whatever happens to the log afterwards.
    fn plan(&self, range: Range<LogIndex>, bytes_max: usize) -> Vec<Planned> {
        let state = self.shared.lock();
        let files = &self.shared.wal.files;
        let plan = state.select(range, bytes_max).filter_map(|index| {
            let position = state.position(index)?;
            let source = match state.hot(index) {
                Some(payload) => Source::Hot(payload.clone()),
                None => Source::Cold(files.locate(state.place(index)?)),
            };
            Some(Planned { position, source })
        });
        plan.collect()
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Log")
            .field("number", &self.number())
            .finish_non_exhaustive()
    }
}

struct Planned {
    position: LogPosition,
    source: Source,
}

enum Source {
    Hot(Bytes),
    Cold(Located),
}

/// Checks sizes and order, and makes the checksums, before any lock is taken.
fn check_entries(number: LogNumber, entries: &[LogEntry]) -> Result<Vec<u32>, StorageError> {
    for entry in entries {
        if entry.payload.len() > ENTRY_BYTES_MAX {
            return Err(too_large("log entry", entry.payload.len(), ENTRY_BYTES_MAX));
        }
    }
    for pair in entries.windows(2) {
        let expected = pair[0].index.next();
        if pair[1].index != expected {
            return Err(StorageError::NotContiguous {
                expected,
                got: pair[1].index,
            });
        }
    }
    let checks = entries.iter().map(|entry| {
        let prefix = append_prefix(number, entry.position());
        record_check([prefix.as_slice(), &entry.payload])
    });
    Ok(checks.collect())
}

fn too_large(what: &'static str, size: usize, size_max: usize) -> StorageError {
    StorageError::TooLarge {
        what,
        size,
        size_max,
    }
}

/// Runs the callback of a call that fails, with no lock held.
fn refuse(error: StorageError, on_durable: Option<Durable>) -> Result<(), StorageError> {
    if let Some(callback) = on_durable {
        callback(Err(error.clone()));
    }
    Err(error)
}

#[cfg(test)]
mod tests;
