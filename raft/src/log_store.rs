//! openraft's log storage over a [`Log`] of the engine.
//!
//! The engine already gives what Raft needs: appended entries are readable at once, votes and
//! entries form one ordered stream of writes, and callbacks come in order, each exactly once. So
//! this module only converts. It never blocks the Raft core: appends queue bytes and return, reads
//! come from memory or go to the executor's blocking pool.
//!
//! Any storage error is fatal to the replica. openraft stops on the `io::Error` it gets back; a
//! restart then recovers from what is on disk.

use std::fmt::Debug;
use std::io;
use std::ops::{Bound, Range, RangeBounds};
use std::sync::Arc;

use futures_util::Stream;
use futures_util::stream;
use kelp_seams::Executor;
use kelp_storage::{Log, LogEntry, LogIndex, StorageError};
use openraft::storage::{IOFlushed, RaftLogStorage};
use openraft::{LogState, OptionalSend, RaftLogReader};
use tokio::sync::oneshot;

use crate::payload;
use crate::type_config::{
    LogId, RaftEntry, TypeConfig, Vote, leader_of, log_id_of, position_of, term_of,
};
use crate::vote_record;

/// Bytes of entries read at once, for replication and for apply. One larger entry is read alone.
pub(crate) const READ_BYTES_MAX: usize = 2 << 20;

/// The log of one replica, as openraft sees it; also its own reader.
#[derive(Clone)]
pub(crate) struct LogStore {
    log: Log,
    executor: Arc<dyn Executor>,
}

impl LogStore {
    pub(crate) fn new(log: Log, executor: Arc<dyn Executor>) -> Self {
        Self { log, executor }
    }

    /// Reads entries from the start of `range` until `bytes_max`, at least one if there is one.
    pub(crate) async fn read(
        &self,
        range: Range<u64>,
        bytes_max: usize,
    ) -> Result<Vec<RaftEntry>, io::Error> {
        if range.is_empty() {
            return Ok(Vec::new());
        }
        let start = range.start;
        let range = LogIndex::new(range.start)..LogIndex::new(range.end);
        let entries = if let Some(entries) = self.log.read_cached(range.clone(), bytes_max) {
            entries
        } else {
            let log = self.log.clone();
            kelp_seams::blocking(&*self.executor, move || log.read(range, bytes_max))
                .await
                .map_err(io::Error::other)?
                .map_err(storage_error)?
        };
        let first = entries.first().map_or(start, |entry| entry.index.get());
        let mut decoded = Vec::with_capacity(entries.len());
        for (expected, entry) in (first..).zip(entries) {
            if entry.index.get() != expected {
                let message = format!("the log has a hole at entry {expected}");
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
            decoded.push(decode_entry(entry)?);
        }
        Ok(decoded)
    }

    /// Both ends of what `range` means for this log.
    fn resolve(&self, range: &impl RangeBounds<u64>) -> Range<u64> {
        let start = match range.start_bound() {
            Bound::Included(start) => *start,
            Bound::Excluded(before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(last) => last.saturating_add(1),
            Bound::Excluded(end) => *end,
            Bound::Unbounded => u64::MAX,
        };
        let present_end = self
            .log
            .last()
            .map_or(0, |last| last.index.get().saturating_add(1));
        let present_start = self
            .log
            .first()
            .map_or(present_end, |first| first.index.get());
        start.max(present_start)..end.min(present_end)
    }
}

fn decode_entry(entry: LogEntry) -> Result<RaftEntry, io::Error> {
    let log_id = LogId::new(leader_of(entry.term), entry.index.get());
    let payload = payload::decode(entry.payload)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok(RaftEntry { log_id, payload })
}

fn storage_error(error: StorageError) -> io::Error {
    io::Error::other(error)
}

impl RaftLogReader<TypeConfig> for LogStore {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> Result<Vec<RaftEntry>, io::Error> {
        let range = self.resolve(&range);
        self.read(range, usize::MAX).await
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, io::Error> {
        let Some(bytes) = self.log.vote() else {
            return Ok(None);
        };
        vote_record::decode(bytes)
            .map(Some)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    async fn limited_get_log_entries(
        &mut self,
        start: u64,
        end: u64,
    ) -> Result<Vec<RaftEntry>, io::Error> {
        self.read(start..end, READ_BYTES_MAX).await
    }

    async fn entries_stream<RB>(
        &mut self,
        range: RB,
    ) -> impl Stream<Item = Result<RaftEntry, io::Error>> + OptionalSend
    where
        RB: RangeBounds<u64> + Clone + Debug + OptionalSend,
    {
        let range = self.resolve(&range);
        Box::pin(entries(self.clone(), range))
    }
}

/// The entries of `range` one by one, read ahead in bounded chunks.
fn entries(
    store: LogStore,
    range: Range<u64>,
) -> impl Stream<Item = Result<RaftEntry, io::Error>> + Send {
    let state = (store, range, Vec::new().into_iter());
    stream::try_unfold(state, |(store, mut range, mut chunk)| async move {
        loop {
            if let Some(entry) = chunk.next() {
                return Ok(Some((entry, (store, range, chunk))));
            }
            if range.is_empty() {
                return Ok(None);
            }
            let entries = store.read(range.clone(), READ_BYTES_MAX).await?;
            let first: Option<&RaftEntry> = entries.first();
            if first.map(|entry| entry.log_id.index) != Some(range.start) {
                let message = format!("entry {} is missing from the log", range.start);
                return Err(io::Error::other(message));
            }
            let count = u64::try_from(entries.len()).expect("a chunk is bounded");
            range.start += count;
            chunk = entries.into_iter();
        }
    })
}

impl RaftLogStorage<TypeConfig> for LogStore {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> Result<LogState<TypeConfig>, io::Error> {
        let purged = self.log.purged();
        let last = self.log.last().or(purged);
        Ok(LogState {
            last_purged_log_id: purged.map(log_id_of),
            last_log_id: last.map(log_id_of),
        })
    }

    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), io::Error> {
        let (done, durable) = oneshot::channel();
        let record = vote_record::encode(vote);
        let on_durable = Box::new(move |result| drop(done.send(result)));
        self.log
            .put_vote(&record, on_durable)
            .map_err(storage_error)?;
        let result = durable
            .await
            .map_err(|_| io::Error::other("database is closed"))?;
        result.map_err(storage_error)
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> Result<(), io::Error> {
        let Some(committed) = committed else {
            return Ok(());
        };
        self.log
            .put_committed(position_of(&committed))
            .map_err(storage_error)
    }

    async fn read_committed(&mut self) -> Result<Option<LogId>, io::Error> {
        Ok(self.log.committed().map(log_id_of))
    }

    async fn append<I>(
        &mut self,
        entries: I,
        callback: IOFlushed<TypeConfig>,
    ) -> Result<(), io::Error>
    where
        I: IntoIterator<Item = RaftEntry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let entries: Vec<LogEntry> = entries
            .into_iter()
            .map(|entry| LogEntry {
                index: LogIndex::new(entry.log_id.index),
                term: term_of(&entry.log_id.leader_id),
                payload: payload::encode(&entry.payload),
            })
            .collect();
        let on_durable = Box::new(move |result: Result<(), StorageError>| {
            callback.io_completed(result.map_err(storage_error));
        });
        self.log.append(entries, on_durable).map_err(storage_error)
    }

    async fn truncate_after(&mut self, last: Option<LogId>) -> Result<(), io::Error> {
        let from = last.map_or(0, |last| last.index + 1);
        self.log
            .truncate_suffix(LogIndex::new(from))
            .map_err(storage_error)
    }

    async fn purge(&mut self, through: LogId) -> Result<(), io::Error> {
        self.log
            .discard_prefix(position_of(&through))
            .map_err(storage_error)
    }
}

#[cfg(test)]
mod tests;
