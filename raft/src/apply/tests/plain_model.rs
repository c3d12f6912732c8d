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
        match OperationRef::decode(command) {
            Ok(OperationRef::Put { key: [], .. } | OperationRef::Delete { key: [] }) => {
                status(ReplyStatus::KeyEmpty)
            }
            Ok(OperationRef::Put { key, value }) => {
                let [key, value] = [key, value].map(Bytes::copy_from_slice);
                self.records.insert((database, key), (revision, value));
                CommandReply::done(revision)
            }
            Ok(OperationRef::Delete { key }) => {
                match self
                    .records
                    .remove(&(database, Bytes::copy_from_slice(key)))
                {
                    Some(_) => CommandReply::done(revision),
                    None => status(ReplyStatus::NotFound),
                }
            }
            Ok(OperationRef::Announce { directory }) => {
                if *self.directories.entry(node).or_insert(directory) == directory {
                    CommandReply::done(revision)
                } else {
                    status(ReplyStatus::Forbidden)
                }
            }
            Err(_) => status(ReplyStatus::UnknownOpcode),
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
