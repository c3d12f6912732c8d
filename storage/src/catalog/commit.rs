//! Edits that change the tables of a keyspace.

use std::sync::Arc;

use super::{Catalog, Committed, Entry, Inner, KeyspaceId, TableChange};
use crate::error::{Corruption, StorageError};
use crate::file_number::FileNumber;
use crate::manifest::Record;
use crate::sequence_number::SequenceNumber;
use crate::staging::StagedVersion;
use crate::table::{Table, TableMeta};
use crate::version::{LevelsFault, Version};

impl Catalog {
    /// Changes the tables of the keyspace `id`. The new tables are opened first; then the edit is
    /// made durable, `publish` is called with the new version while no other edit can happen, and
    /// the removed tables are marked dead. A table that is removed and added changes its level: it
    /// stays the same open table.
    ///
    /// # Errors
    /// Nothing was published. The edit may be in the manifest or not, so the new tables may only
    /// be committed again, or given to [`Catalog::discard`].
    pub(crate) fn commit(
        &self,
        id: KeyspaceId,
        change: TableChange,
        publish: impl FnOnce(&Arc<Version>),
    ) -> Result<Committed, StorageError> {
        let TableChange {
            added,
            removed,
            last_sequence,
        } = change;
        let Some(current) = self.lock().version(id) else {
            return Ok(Committed::Declined);
        };
        let added = self.open_tables(added, &current)?;
        let mut inner = self.lock();
        let Some(Entry { version: old, .. }) = inner.keyspaces.get(&id) else {
            return Ok(Committed::Declined);
        };
        let old = Arc::clone(old);
        let added = with_epochs(added, &old);
        let Some(levels) = old.levels().changed(&removed, added.iter().cloned()) else {
            return Ok(Committed::Declined);
        };
        let levels = levels.map_err(|fault| self.wrong_tables(&added, fault))?;
        let newest = added.iter().map(|(_, table)| table.meta().sequence_max);
        let last = newest
            .chain(last_sequence)
            .fold(old.last_sequence(), SequenceNumber::max);
        let mut edit = vec![Record::LastSequence(id, last)];
        let remove = |&(level, number)| Record::RemoveTable { id, level, number };
        edit.extend(removed.iter().map(remove));
        edit.extend(
            added
                .iter()
                .map(|(level, table)| add_table(id, *level, table)),
        );
        self.append(&mut inner, edit)?;
        let version = Arc::new(Version::new(id, old.options(), last, levels));
        inner.set_version(id, &version);
        publish(&version);
        let stays = |number| added.iter().any(|(_, table)| table.meta().number == number);
        let goes = |number| removed.iter().any(|&(_, gone)| gone == number);
        mark_dead(&old, |number| goes(number) && !stays(number));
        Ok(Committed::Published(version))
    }

    /// Replaces the keyspace `old` by a staged state: its name is bound to a new incarnation in one
    /// edit. The new version's last sequence number is at least `sequence_min`.
    ///
    /// # Errors
    /// As for [`Catalog::commit`]; the staged files are given back.
    pub(crate) fn replace(
        &self,
        old: KeyspaceId,
        staged: StagedVersion,
        sequence_min: SequenceNumber,
        publish: impl FnOnce(&Arc<Version>),
    ) -> Result<Committed, StorageError> {
        let shipped = staged.version();
        let mut inner = self.lock();
        let Some(Entry { name, version }) = inner.keyspaces.get(&old) else {
            return Ok(Committed::Declined);
        };
        let (name, replaced) = (Arc::clone(name), Arc::clone(version));
        let id = inner.next_keyspace;
        let last = [sequence_min, replaced.last_sequence()]
            .into_iter()
            .fold(shipped.last_sequence(), SequenceNumber::max);
        let mut edit = vec![
            Record::DropKeyspace(old),
            Record::NextKeyspace(id.next()),
            Record::AddKeyspace {
                id,
                name: Arc::clone(&name),
                options: shipped.options(),
            },
            Record::LastSequence(id, last),
        ];
        let tables = shipped.tables();
        edit.extend(tables.map(|(level, table)| add_table(id, level, table)));
        self.append(&mut inner, edit)?;
        let levels = shipped.levels().clone();
        let version = Arc::new(Version::new(id, shipped.options(), last, levels));
        staged.joined();
        inner.next_keyspace = id.next();
        inner.keyspaces.remove(&old);
        let entry = Entry {
            name,
            version: Arc::clone(&version),
        };
        inner.keyspaces.insert(id, entry);
        publish(&version);
        mark_dead(&replaced, |_| true);
        Ok(Committed::Published(version))
    }

    /// Opens what is new; a table of `current` is shared.
    fn open_tables(
        &self,
        added: Vec<(usize, TableMeta)>,
        current: &Version,
    ) -> Result<Vec<(usize, Arc<Table>)>, StorageError> {
        let open = |(level, meta): (usize, TableMeta)| {
            let known = current
                .tables()
                .find(|(_, table)| table.meta().number == meta.number);
            let table = match known {
                Some((_, table)) => Arc::clone(table),
                None => Arc::new(self.open_table(meta)?),
            };
            Ok((level, table))
        };
        added.into_iter().map(open).collect()
    }

    /// Tables that were written from damaged ones, or by a mistake.
    fn wrong_tables(&self, added: &[(usize, Arc<Table>)], fault: LevelsFault) -> StorageError {
        let number = added
            .first()
            .map_or(FileNumber::new(0), |(_, table)| table.meta().number);
        let path = self.directory().join(number.sstable_name());
        Corruption::new(path, 0, fault.0).into()
    }
}

impl Inner {
    fn version(&self, id: KeyspaceId) -> Option<Arc<Version>> {
        let entry = self.keyspaces.get(&id)?;
        Some(Arc::clone(&entry.version))
    }

    fn set_version(&mut self, id: KeyspaceId, version: &Arc<Version>) {
        if let Some(entry) = self.keyspaces.get_mut(&id) {
            entry.version = Arc::clone(version);
        }
    }
}

/// Those that have no epoch yet follow all others, in their order.
fn with_epochs(mut added: Vec<(usize, Arc<Table>)>, old: &Version) -> Vec<(usize, Arc<Table>)> {
    let others = old.tables().map(|(_, table)| table.meta().epoch);
    let given = added.iter().map(|(_, table)| table.meta().epoch);
    let mut newest = others.chain(given).max().unwrap_or(0);
    for (_, table) in &mut added {
        // A table without an epoch was opened just now, so nobody else has it.
        if table.meta().epoch == 0
            && let Some(table) = Arc::get_mut(table)
        {
            newest += 1;
            table.set_epoch(newest);
        }
    }
    added
}

fn add_table(id: KeyspaceId, level: usize, table: &Arc<Table>) -> Record {
    Record::AddTable {
        id,
        level,
        table: table.meta().clone(),
    }
}

fn mark_dead(version: &Version, gone: impl Fn(FileNumber) -> bool) {
    for (_, table) in version.tables() {
        if gone(table.meta().number) {
            table.mark_dead();
        }
    }
}
