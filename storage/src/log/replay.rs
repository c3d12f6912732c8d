//! Rebuilds the logs from the records of the write-ahead log at open.
//!
//! The first head of a log sets its state; its entries then lie in older files, which may be gone
//! rightly if the entries are discarded later. Every further head must agree with what was
//! replayed up to it.

use std::collections::BTreeMap;
use std::ops::Range;

use super::{LogIndex, LogNumber, LogPosition, LogState};
use crate::wal::queue::Place;
use crate::wal::record::{Head, Record};
use crate::wal::recover::Replay;

/// All logs while they are rebuilt.
#[derive(Debug, Default)]
pub(crate) struct ReplayLogs {
    logs: BTreeMap<LogNumber, ReplayLog>,
}

/// Invariants: the entries of the log are `missing`, known only by their indexes, followed without
/// a hole by those of `state`; `missing` is empty exactly when its ends are equal.
#[derive(Debug)]
struct ReplayLog {
    state: LogState,
    missing: Range<u64>,
}

impl ReplayLogs {
    /// The rebuilt logs.
    pub(crate) fn into_states(self) -> BTreeMap<LogNumber, LogState> {
        self.logs
            .into_iter()
            .map(|(number, log)| (number, log.state))
            .collect()
    }

    /// The rebuilt log `number`.
    pub(crate) fn state(&self, number: LogNumber) -> Option<&LogState> {
        self.logs.get(&number).map(|log| &log.state)
    }
}

impl Replay for ReplayLogs {
    fn apply(&mut self, log: LogNumber, record: Record<'_>, place: Place) -> Result<(), String> {
        match (self.logs.get_mut(&log), record) {
            (Some(known), record) => known.apply(record, place),
            (None, Record::Head(head)) => {
                self.logs.insert(log, ReplayLog::from_head(&head));
                Ok(())
            }
            (None, record) => {
                let mut created = ReplayLog::from_head(&Head::default());
                created.apply(record, place)?;
                self.logs.insert(log, created);
                Ok(())
            }
        }
    }

    fn missing(&self) -> Option<String> {
        let (number, log) = self.logs.iter().find(|(_, log)| !log.missing.is_empty())?;
        let Range { start, end } = log.missing;
        Some(format!("it holds entries {start}..{end} of log {number}"))
    }
}

impl ReplayLog {
    fn from_head(head: &Head) -> Self {
        let mut state = LogState::default();
        state.vote.clone_from(&head.vote);
        state.committed = head.committed;
        state.purged = head.purged;
        let missing = head.entries.map_or(0..0, |(first, last)| {
            first.index.get()..last.index.get() + 1
        });
        Self { state, missing }
    }

    fn apply(&mut self, record: Record<'_>, place: Place) -> Result<(), String> {
        match record {
            Record::Append { position, .. } => {
                self.check_continues(position.index)?;
                self.state.append(position, place);
            }
            Record::TruncateSuffix { from } => {
                self.state.truncate_suffix(from);
                let end = self.missing.end.min(from.get()).max(self.missing.start);
                self.missing.end = end;
            }
            Record::DiscardPrefix { through } => self.discard(through),
            Record::PutVote(vote) => {
                let before = self.state.vote.as_ref().map_or(0, |stored| stored.sequence);
                if vote.sequence != before + 1 {
                    return Err(format!("vote {} follows vote {before}", vote.sequence));
                }
                self.state.vote = Some(vote);
            }
            Record::PutCommitted(committed) => self.state.committed = Some(committed),
            Record::Head(head) => self.check_head(&head)?,
        }
        Ok(())
    }

    fn check_continues(&self, got: LogIndex) -> Result<(), String> {
        if self.state.last().is_none() && !self.missing.is_empty() {
            let expected = self.missing.end;
            return (got.get() == expected)
                .then_some(())
                .ok_or_else(|| format!("entry {got} stands where entry {expected} belongs"));
        }
        self.state
            .check_continues(got)
            .map_err(|error| error.to_string())
    }

    fn discard(&mut self, through: LogPosition) {
        self.state.discard_prefix(through);
        let start = self
            .missing
            .start
            .max(through.index.get() + 1)
            .min(self.missing.end);
        self.missing.start = start;
    }

    fn check_head(&self, head: &Head) -> Result<(), String> {
        let own = self.state.to_head().head;
        let meta =
            own.vote == head.vote && own.committed == head.committed && own.purged == head.purged;
        let bounds = |head: &Head| head.entries.map(|(first, last)| (first.index, last.index));
        let mut entries = bounds(&own);
        if !self.missing.is_empty() {
            let last = entries.map_or(self.missing.end - 1, |(_, last)| last.get());
            entries = Some((LogIndex::new(self.missing.start), LogIndex::new(last)));
        }
        if meta && entries == bounds(head) {
            return Ok(());
        }
        Err(format!(
            "the head of the file is {head:?}, the records before it give {own:?}"
        ))
    }
}
