//! Which tables each keyspace consists of.
//!
//! The catalog keeps the newest [`Version`] of every keyspace and is the only one to change it.
//! A change is one edit of the manifest: it is durable before the new version is published, and a
//! crash leaves it whole or not at all. Flush, compaction and install write their tables first and
//! make them durable, and then ask for the edit.

mod dead_files;
mod options;

use std::path::Path;
use std::sync::Arc;

use crate::error::StorageError;
use crate::file_number::FileNumber;
use crate::sequence_number::SequenceNumber;
use crate::sstable::{Birth, BlockCache};
use crate::staging::StagedVersion;
use crate::table::TableMeta;
use crate::version::Version;
use crate::vfs::Vfs;

pub(crate) use dead_files::DeadFiles;
pub(crate) use options::KeyspaceOptions;

/// One incarnation of a keyspace. A name is bound to one at a time; an install binds it to a new
/// one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeyspaceId(u32);

/// What an edit changes in the tables of one keyspace.
#[derive(Debug, Default)]
pub(crate) struct TableChange {
    /// New tables with their levels, oldest first; they and their names are durable already.
    pub(crate) added: Vec<(usize, TableMeta)>,
    /// Tables that the new ones stand for, with their levels.
    pub(crate) removed: Vec<(usize, FileNumber)>,
    /// What the tables hold from now on; the keyspace's number never goes back.
    pub(crate) last_sequence: Option<SequenceNumber>,
}

/// What became of an edit.
#[derive(Debug)]
pub(crate) enum Committed {
    /// It is durable, and this is the new version.
    Published(Arc<Version>),
    /// The keyspace is gone, or a table that was to be removed is: nothing was changed, and the
    /// caller discards the new tables.
    Declined,
}

/// Counters of the catalog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CatalogMetrics {
    /// Bytes of the manifest that are in use.
    pub(crate) manifest_bytes: u64,
    /// Manifests that were written whole since the open.
    pub(crate) manifest_rolls: u64,
    /// Tables that no version needs but a reader still holds.
    pub(crate) zombie_tables: u64,
    /// Their length.
    pub(crate) zombie_bytes: u64,
}

/// The versions of all keyspaces of a database.
pub(crate) struct Catalog {}

impl Catalog {
    /// A number for a new table, never given before.
    pub(crate) fn next_number(&self) -> FileNumber {
        unimplemented!()
    }

    /// The birth of a table that this database writes under `number`.
    pub(crate) fn birth(&self, number: FileNumber) -> Birth {
        unimplemented!("{number}")
    }

    /// The disk.
    pub(crate) fn vfs(&self) -> &Arc<dyn Vfs> {
        unimplemented!()
    }

    /// Where the tables are.
    pub(crate) fn directory(&self) -> &Path {
        unimplemented!()
    }

    /// The blocks that all tables share.
    pub(crate) fn cache(&self) -> &Arc<BlockCache> {
        unimplemented!()
    }

    /// The newest version of the keyspace `name`, which is made durably if there is none. One that
    /// exists keeps its options.
    pub(crate) fn keyspace(
        &self,
        name: &str,
        options: KeyspaceOptions,
    ) -> Result<Arc<Version>, StorageError> {
        unimplemented!("{name} {options:?}")
    }

    /// Changes the tables of the keyspace `id`. The new tables are opened first; then the edit is
    /// made durable, `publish` is called with the new version while no other edit can happen, and
    /// the removed tables are marked dead.
    ///
    /// # Errors
    /// Nothing was published. The edit may be in the manifest or not, so the new tables may only
    /// be given to [`Catalog::discard`].
    pub(crate) fn commit(
        &self,
        id: KeyspaceId,
        change: TableChange,
        publish: impl FnOnce(&Arc<Version>),
    ) -> Result<Committed, StorageError> {
        let _ = (id, change, publish);
        unimplemented!()
    }

    /// Replaces the keyspace `old` by a staged state: its name is bound to a new incarnation in one
    /// edit. The new version's last sequence number is at least `sequence_min`.
    ///
    /// # Errors
    /// As for [`Catalog::commit`].
    pub(crate) fn replace(
        &self,
        old: KeyspaceId,
        staged: StagedVersion,
        sequence_min: SequenceNumber,
        publish: impl FnOnce(&Arc<Version>),
    ) -> Result<Committed, StorageError> {
        let _ = (old, staged, sequence_min, publish);
        unimplemented!()
    }

    /// Has tables removed that never joined a version, as soon as that is safe.
    pub(crate) fn discard(&self, numbers: &[FileNumber]) {
        unimplemented!("{numbers:?}")
    }

    /// A snapshot of the counters.
    pub(crate) fn metrics(&self) -> CatalogMetrics {
        unimplemented!()
    }

    /// Stops the remover. Files that it did not reach are removed by the next open.
    pub(crate) fn stop(&self) {
        unimplemented!()
    }
}
