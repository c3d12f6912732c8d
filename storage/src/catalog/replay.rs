//! The state that the edits of a manifest add up to. Pure: it knows tables by name only.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{KeyspaceId, KeyspaceOptions};
use crate::file_number::FileNumber;
use crate::manifest::Record;
use crate::sequence_number::SequenceNumber;
use crate::table::TableMeta;

/// All keyspaces.
///
/// Invariants:
/// - No table belongs to two keyspaces, and each was numbered below `next_number`.
/// - A name is bound to one keyspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) next_number: FileNumber,
    pub(super) next_keyspace: KeyspaceId,
    pub(super) keyspaces: BTreeMap<KeyspaceId, KeyspaceState>,
    numbers: BTreeSet<FileNumber>,
}

/// One keyspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyspaceState {
    pub(super) name: Arc<str>,
    pub(super) options: KeyspaceOptions,
    pub(super) last_sequence: SequenceNumber,
    pub(super) tables: BTreeMap<FileNumber, (usize, TableMeta)>,
}

/// Why a record cannot follow the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReplayFault(pub(super) &'static str);

const NO_KEYSPACE: ReplayFault = ReplayFault("an edit changes a keyspace that is not there");

impl State {
    /// That of a new database.
    pub(super) fn new() -> Self {
        Self {
            next_number: FileNumber::new(1),
            next_keyspace: KeyspaceId::FIRST,
            keyspaces: BTreeMap::new(),
            numbers: BTreeSet::new(),
        }
    }

    /// Whether a table belongs to a keyspace.
    pub(super) fn holds(&self, number: FileNumber) -> bool {
        self.numbers.contains(&number)
    }

    /// Takes one record over.
    pub(super) fn apply(&mut self, record: Record) -> Result<(), ReplayFault> {
        match record {
            Record::NextNumber(next) => self.next_number = self.next_number.max(next),
            Record::NextKeyspace(next) => self.next_keyspace = self.next_keyspace.max(next),
            Record::AddKeyspace { id, name, options } => {
                return self.add_keyspace(id, name, options);
            }
            Record::DropKeyspace(id) => {
                let dropped = self.keyspaces.remove(&id).ok_or(NO_KEYSPACE)?;
                for number in dropped.tables.keys() {
                    self.numbers.remove(number);
                }
            }
            Record::LastSequence(id, last) => {
                let keyspace = self.keyspace(id)?;
                if last < keyspace.last_sequence {
                    return Err(ReplayFault("a keyspace goes back in time"));
                }
                keyspace.last_sequence = last;
            }
            Record::RemoveTable { id, level, number } => {
                let removed = self.keyspace(id)?.tables.remove(&number);
                if removed.is_none_or(|(found, _)| found != level) {
                    return Err(ReplayFault("an edit removes a table that is not there"));
                }
                self.numbers.remove(&number);
            }
            Record::AddTable { id, level, table } => return self.add_table(id, level, table),
        }
        Ok(())
    }

    fn add_keyspace(
        &mut self,
        id: KeyspaceId,
        name: Arc<str>,
        options: KeyspaceOptions,
    ) -> Result<(), ReplayFault> {
        let bound = |keyspace: &KeyspaceState| keyspace.name == name;
        if id >= self.next_keyspace {
            return Err(ReplayFault("a keyspace has an id that was not given"));
        }
        if self.keyspaces.contains_key(&id) || self.keyspaces.values().any(bound) {
            return Err(ReplayFault("a keyspace is there already"));
        }
        let added = KeyspaceState {
            name,
            options,
            last_sequence: SequenceNumber::ZERO,
            tables: BTreeMap::new(),
        };
        self.keyspaces.insert(id, added);
        Ok(())
    }

    fn add_table(
        &mut self,
        id: KeyspaceId,
        level: usize,
        table: TableMeta,
    ) -> Result<(), ReplayFault> {
        if table.number >= self.next_number {
            return Err(ReplayFault("a table has a number that was not given"));
        }
        let keyspace = self.keyspaces.get_mut(&id).ok_or(NO_KEYSPACE)?;
        if table.sequence_max > keyspace.last_sequence {
            return Err(ReplayFault("a table is newer than its keyspace"));
        }
        if !self.numbers.insert(table.number) {
            return Err(ReplayFault("a table is added twice"));
        }
        keyspace.tables.insert(table.number, (level, table));
        Ok(())
    }

    fn keyspace(&mut self, id: KeyspaceId) -> Result<&mut KeyspaceState, ReplayFault> {
        self.keyspaces.get_mut(&id).ok_or(NO_KEYSPACE)
    }
}

#[cfg(test)]
mod tests;
