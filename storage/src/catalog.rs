//! Which tables each keyspace consists of.
//!
//! The catalog keeps the newest [`Version`] of every keyspace and is the only one to change it.
//! A change is one edit of the manifest: it is durable before the new version is published, and a
//! crash leaves it whole or not at all. Flush, compaction and install write their tables first and
//! make them durable, and then ask for the edit.

mod commit;
mod dead_files;
mod open;
mod options;
mod replay;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::codec::index;
use crate::error::StorageError;
use crate::file_number::FileNumber;
use crate::manifest::{
    AppendError, Edit, ManifestCounters, ManifestWriter, NAME_BYTES_MAX, Record,
};
use crate::sequence_number::SequenceNumber;
use crate::sstable::{Birth, BlockCache};
use crate::table::{Table, TableMeta};
use crate::version::{Levels, Version};
use crate::vfs::Vfs;

pub(crate) use dead_files::DeadFiles;
pub(crate) use open::{CatalogRecovery, CatalogSetup};
pub(crate) use options::KeyspaceOptions;

/// Tables in one edit of a state that is written whole: some hundred kilobytes with usual keys.
const STATE_TABLES_PER_EDIT: usize = 1024;

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
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "keyspaces take the version when it is published")
    )]
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
pub(crate) struct Catalog {
    setup: CatalogSetup,
    /// The number that the next file gets.
    next_number: AtomicU64,
    dead_files: Arc<DeadFiles>,
    manifest: Arc<ManifestCounters>,
    /// Held over a write and sync of the manifest, never over reading or writing tables.
    inner: Mutex<Inner>,
    /// Somebody else may have the directory. Set with `inner` locked.
    closed: AtomicBool,
}

/// Invariants: a name is bound to one entry; ids are below `next_keyspace`.
struct Inner {
    writer: ManifestWriter,
    keyspaces: BTreeMap<KeyspaceId, Entry>,
    next_keyspace: KeyspaceId,
}

struct Entry {
    name: Arc<str>,
    version: Arc<Version>,
}

impl KeyspaceId {
    /// That of a state that is in no keyspace.
    pub(crate) const NONE: Self = Self(0);

    const FIRST: Self = Self(1);

    /// The bare number.
    pub(crate) const fn get(self) -> u32 {
        self.0
    }

    /// The id with this number. The last number of the range would have no successor.
    pub(crate) fn from_encoded(number: u32) -> Option<Self> {
        (number != 0 && number < u32::MAX).then_some(Self(number))
    }

    fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl Catalog {
    /// A number for a new table, never given before.
    pub(crate) fn next_number(&self) -> FileNumber {
        FileNumber::new(self.next_number.fetch_add(1, Ordering::Relaxed))
    }

    /// The birth of a table that this database writes under `number`.
    pub(crate) fn birth(&self, number: FileNumber) -> Birth {
        let database = self.setup.database;
        Birth { database, number }
    }

    /// The disk.
    pub(crate) fn vfs(&self) -> &Arc<dyn Vfs> {
        &self.setup.vfs
    }

    /// Where the tables are.
    pub(crate) fn directory(&self) -> &Path {
        &self.setup.directory
    }

    /// The blocks that all tables share.
    pub(crate) fn cache(&self) -> &Arc<BlockCache> {
        &self.setup.cache
    }

    /// The newest version of the keyspace `name`, which is made durably if there is none. One that
    /// exists keeps its options.
    ///
    /// # Errors
    /// [`StorageError::TooLarge`]: the name is too long. [`StorageError::Io`]: it may be tried
    /// again.
    pub(crate) fn keyspace(
        &self,
        name: &str,
        options: KeyspaceOptions,
    ) -> Result<Arc<Version>, StorageError> {
        let mut inner = self.lock();
        let mut entries = inner.keyspaces.values();
        if let Some(known) = entries.find(|entry| &*entry.name == name) {
            return Ok(Arc::clone(&known.version));
        }
        if name.len() > NAME_BYTES_MAX {
            return Err(StorageError::TooLarge {
                what: "name of a keyspace",
                size: name.len(),
                size_max: NAME_BYTES_MAX,
            });
        }
        let (id, name) = (inner.next_keyspace, Arc::<str>::from(name));
        let added = Record::AddKeyspace {
            id,
            name: Arc::clone(&name),
            options,
        };
        self.append(&mut inner, vec![Record::NextKeyspace(id.next()), added])?;
        let last = SequenceNumber::ZERO;
        let version = Arc::new(Version::new(id, options, last, Levels::default()));
        inner.next_keyspace = id.next();
        let entry = Entry {
            name,
            version: Arc::clone(&version),
        };
        inner.keyspaces.insert(id, entry);
        Ok(version)
    }

    /// Has tables removed that never joined a version, as soon as that is safe.
    pub(crate) fn discard(&self, numbers: &[FileNumber]) {
        let names = numbers.iter().map(|number| number.sstable_name());
        self.dead_files.remove(names);
    }

    /// A snapshot of the counters; waits for nothing.
    pub(crate) fn metrics(&self) -> CatalogMetrics {
        let (zombie_tables, zombie_bytes) = self.dead_files.zombies();
        CatalogMetrics {
            manifest_bytes: self.manifest.bytes(),
            manifest_rolls: self.manifest.rolls(),
            zombie_tables,
            zombie_bytes,
        }
    }

    /// Refuses edits from now on and stops the remover. Files that it did not reach are removed by
    /// the next open.
    pub(crate) fn stop(&self) {
        {
            let _edits = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            self.closed.store(true, Ordering::Release);
        }
        self.dead_files.stop();
    }

    /// Whether the directory may be somebody else's by now.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Opens a table that was just written or shipped.
    pub(crate) fn open_table(&self, meta: TableMeta) -> Result<Table, StorageError> {
        let setup = &self.setup;
        let table = Table::open(
            &*setup.vfs,
            &setup.directory,
            meta,
            &setup.cache,
            &self.dead_files,
        );
        table.map_err(StorageError::from)
    }

    /// Makes an edit durable, in a new manifest where the open one cannot take it.
    fn append(&self, inner: &mut Inner, mut edit: Edit) -> Result<(), StorageError> {
        if self.is_closed() {
            return Err(StorageError::Closed);
        }
        let next = FileNumber::new(self.next_number.load(Ordering::Relaxed));
        edit.insert(0, Record::NextNumber(next));
        if !inner.writer.has_room(&edit) {
            self.roll(inner, &edit)?;
        }
        let appended = inner.writer.append(&edit);
        if appended.is_err() {
            self.dead_files.doubt(edit.iter().filter_map(added_file));
        }
        appended.map_err(append_error)
    }

    /// Writes the state into a new manifest. Once that succeeds no crash brings back an edit that
    /// failed.
    fn roll(&self, inner: &mut Inner, next: &Edit) -> Result<(), StorageError> {
        let number = self.next_number();
        let state = inner.state(number.next());
        let unneeded = inner.writer.roll(number, &state, next);
        self.dead_files.release(unneeded.map_err(append_error)?);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic while the lock was held may have left manifest and memory apart.
        self.inner.lock().expect("no edit panics")
    }
}

impl Inner {
    /// The whole state as edits of moderate length.
    fn state(&self, next_number: FileNumber) -> Vec<Edit> {
        let mut edits = vec![vec![
            Record::NextNumber(next_number),
            Record::NextKeyspace(self.next_keyspace),
        ]];
        for (&id, Entry { name, version }) in &self.keyspaces {
            let added = Record::AddKeyspace {
                id,
                name: Arc::clone(name),
                options: version.options(),
            };
            let last = Record::LastSequence(id, version.last_sequence());
            edits.push(vec![added, last]);
            let tables: Vec<_> = version.tables().collect();
            for chunk in tables.chunks(STATE_TABLES_PER_EDIT) {
                let add = |&(level, table): &(usize, &Arc<Table>)| Record::AddTable {
                    id,
                    level,
                    table: table.meta().clone(),
                };
                edits.push(chunk.iter().map(add).collect());
            }
        }
        edits
    }
}

/// The file that a record needs.
fn added_file(record: &Record) -> Option<String> {
    match record {
        Record::AddTable { table, .. } => Some(table.number.sstable_name()),
        _ => None,
    }
}

fn append_error(error: AppendError) -> StorageError {
    match error {
        AppendError::Io(error) => error.into(),
        AppendError::TooLarge { bytes, bytes_max } => StorageError::TooLarge {
            what: "manifest",
            size: index(bytes),
            size_max: index(bytes_max),
        },
    }
}

#[cfg(test)]
pub(crate) mod tests;
