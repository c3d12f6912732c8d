//! What applying means, in the plainest terms: maps, and the rules of deduplication written down a
//! second time.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// The state of a group as a handful of maps.
#[derive(Clone, Default)]
pub(super) struct PlainModel {
    pub(super) records: BTreeMap<(u8, Bytes), (Revision, Bytes)>,
    pub(super) executed: BTreeSet<SubBatchId>,
    results: BTreeMap<SubBatchId, Vec<CommandReply>>,
    boots: BTreeMap<NodeId, Boot>,
    floors: BTreeMap<NodeId, BatchNumber>,
    directories: BTreeMap<NodeId, DatabaseId>,
}

impl PlainModel {
    /// Applies the sub-batch whose first command stands at `first` of entry `index`.
    pub(super) fn apply(
        &mut self,
        index: u64,
        first: u64,
        sub_batch: &SubBatch,
    ) -> SubBatchOutcome {
        let id = sub_batch.id;
        if self
            .boots
            .get(&id.node)
            .is_some_and(|newest| *newest > id.boot)
        {
            return SubBatchOutcome::StaleBoot;
        }
        if self.executed.contains(&id) {
            return match self.results.get(&id) {
                Some(replies) => SubBatchOutcome::ExecutedEarlier(replies.clone()),
                None => SubBatchOutcome::ExecutedForgotten,
            };
        }
        let of_boot = |other: &&SubBatchId| other.node == id.node && other.boot == id.boot;
        let last = self
            .executed
            .iter()
            .filter(of_boot)
            .map(|other| other.batch.get())
            .max();
        let expected = BatchNumber::new(last.unwrap_or(0) + 1);
        if id.batch != expected {
            return SubBatchOutcome::Gap { expected };
        }
        if self.boots.insert(id.node, id.boot) != Some(id.boot) {
            self.floors.remove(&id.node);
        }
        let floor = self.floors.entry(id.node).or_default();
        *floor = sub_batch.floor.min(id.batch).max(*floor);
        let floor = *floor;
        self.results.retain(|other, _| {
            other.node != id.node || (other.boot == id.boot && other.batch >= floor)
        });
        let replies: Vec<_> = (first..)
            .zip(sub_batch.commands())
            .map(|(position, command)| {
                self.run(id.node, &command.unwrap(), (index << 16) + position)
            })
            .collect();
        self.executed.insert(id);
        self.results.insert(id, replies.clone());
        SubBatchOutcome::Executed(replies)
    }

    fn run(&mut self, node: NodeId, command: &CommandRef<'_>, revision: u64) -> CommandReply {
        let database = command.head.database;
        let revision = Revision::new(revision);
        let Ok(operation) = OperationRef::decode(command) else {
            return status(ReplyStatus::UnknownOpcode);
        };
        if has_empty_key(&operation) {
            return status(ReplyStatus::KeyEmpty);
        }
        match operation {
            OperationRef::Announce { directory } => {
                if *self.directories.entry(node).or_insert(directory) == directory {
                    CommandReply::done(revision)
                } else {
                    status(ReplyStatus::Forbidden)
                }
            }
            OperationRef::Batch(batch) => {
                let statuses: Vec<u8> = batch
                    .parts()
                    .map(|part| self.change(database, &part, revision).status.get())
                    .collect();
                let all_done = statuses.iter().all(|status| *status == 0);
                CommandReply {
                    value: Bytes::from(if all_done { Vec::new() } else { statuses }),
                    ..CommandReply::done(revision)
                }
            }
            OperationRef::DeleteRange {
                count_max,
                first,
                end,
            } => self.delete_range(database, count_max, (first, end), revision),
            operation => self.change(database, &operation, revision),
        }
    }

    /// Executes what changes one key.
    fn change(
        &mut self,
        database: u8,
        operation: &OperationRef<'_>,
        revision: Revision,
    ) -> CommandReply {
        let record = |key: &[u8]| (database, Bytes::copy_from_slice(key));
        let done = CommandReply::done(revision);
        match *operation {
            OperationRef::Put { key, value } => {
                let value = Bytes::copy_from_slice(value);
                self.records.insert(record(key), (revision, value));
                done
            }
            OperationRef::Delete { key } => match self.records.remove(&record(key)) {
                Some(_) => done,
                None => status(ReplyStatus::NotFound),
            },
            OperationRef::CompareAndSwap {
                key,
                condition,
                value,
            } => {
                let found = self.records.get(&record(key)).cloned();
                let holds = match condition {
                    ConditionRef::Revision(Revision::ABSENT) | ConditionRef::Absent => {
                        found.is_none()
                    }
                    ConditionRef::Revision(expected) => {
                        found.as_ref().is_some_and(|found| found.0 == expected)
                    }
                    ConditionRef::Value(expected) => {
                        found.as_ref().is_some_and(|found| found.1 == expected)
                    }
                    ConditionRef::Exists => found.is_some(),
                };
                match (holds, value) {
                    (false, _) => CommandReply {
                        revision: found.map_or(Revision::ABSENT, |found| found.0),
                        ..status(ReplyStatus::ConditionFalse)
                    },
                    (true, Some(value)) => {
                        self.change(database, &OperationRef::Put { key, value }, revision)
                    }
                    (true, None) => self.change(database, &OperationRef::Delete { key }, revision),
                }
            }
            OperationRef::Increment { key, delta } => {
                let text = self.records.get(&record(key)).map(|found| found.1.clone());
                let text = text.unwrap_or_else(|| Bytes::from_static(b"0"));
                let number = std::str::from_utf8(&text)
                    .ok()
                    .and_then(|text| text.parse::<i64>().ok().filter(|n| n.to_string() == text));
                let Some(number) = number else {
                    return status(ReplyStatus::NotANumber);
                };
                let Some(sum) = number.checked_add(delta) else {
                    return status(ReplyStatus::OutOfRange);
                };
                let value = Bytes::from(sum.to_string());
                self.records.insert(record(key), (revision, value.clone()));
                CommandReply { value, ..done }
            }
            OperationRef::Append { key, value } => {
                let (written, whole) = self.records.entry(record(key)).or_default();
                *written = revision;
                *whole = Bytes::from([&whole[..], value].concat());
                CommandReply {
                    value: Bytes::from(whole.len().to_string()),
                    ..done
                }
            }
            _ => unreachable!("it changes more than one key"),
        }
    }

    fn delete_range(
        &mut self,
        database: u8,
        count_max: u32,
        (first, end): (&[u8], &[u8]),
        revision: Revision,
    ) -> CommandReply {
        let mut keys = self
            .records
            .keys()
            .filter(|(of, key)| *of == database && key >= first && (end.is_empty() || key < end))
            .map(|(_, key)| key.clone())
            .collect::<Vec<_>>()
            .into_iter();
        let removed: Vec<_> = keys.by_ref().take(count_max as usize).collect();
        for key in &removed {
            self.records.remove(&(database, key.clone()));
        }
        let count = u32::try_from(removed.len()).unwrap();
        let next = keys.next().unwrap_or_default();
        CommandReply {
            value: Bytes::from([&count.to_be_bytes()[..], &next].concat()),
            ..CommandReply::done(revision)
        }
    }

    /// The user keys, revisions and values of `database` in order.
    pub(super) fn database(&self, database: u8) -> Vec<(Bytes, Revision, Bytes)> {
        self.records
            .iter()
            .filter(|((of, _), _)| *of == database)
            .map(|((_, key), (revision, value))| (key.clone(), *revision, value.clone()))
            .collect()
    }
}

fn has_empty_key(operation: &OperationRef<'_>) -> bool {
    match operation {
        OperationRef::Put { key, .. }
        | OperationRef::Delete { key }
        | OperationRef::CompareAndSwap { key, .. }
        | OperationRef::Increment { key, .. }
        | OperationRef::Append { key, .. } => key.is_empty(),
        OperationRef::Batch(batch) => batch.parts().any(|part| has_empty_key(&part)),
        _ => false,
    }
}
