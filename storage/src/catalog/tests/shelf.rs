//! A catalog on a disk in memory, whose remover runs when the test says so, and small tables.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use kelp_seams::{Clock, ManualClock, SteppedExecutor};

use crate::catalog::*;
use crate::error::OpenError;
use crate::identity::DatabaseId;
use crate::internal_key::{Kind, Trailer};
use crate::sstable::SstableWriter;
use crate::vfs::MemFs;

pub(crate) const DATABASE: DatabaseId = DatabaseId::from_bytes([7; 16]);

pub(crate) fn directory() -> &'static Path {
    Path::new("/data")
}

pub(crate) struct Shelf {
    pub(crate) disk: MemFs,
    pub(crate) vfs: Arc<dyn Vfs>,
    pub(crate) executor: SteppedExecutor,
}

impl Shelf {
    pub(crate) fn new(disk: MemFs) -> Self {
        let vfs = Arc::new(disk.clone());
        Self::over(disk, vfs)
    }

    /// A shelf that reaches `disk` through `vfs`.
    pub(crate) fn over(disk: MemFs, vfs: Arc<dyn Vfs>) -> Self {
        disk.create_dir_all(directory()).unwrap();
        let clock = Arc::new(ManualClock::new()) as Arc<dyn Clock>;
        Self {
            disk,
            vfs,
            executor: SteppedExecutor::new(clock),
        }
    }

    pub(crate) fn setup(&self) -> CatalogSetup {
        CatalogSetup {
            vfs: Arc::clone(&self.vfs),
            directory: directory().to_owned(),
            database: DATABASE,
            cache: Arc::new(BlockCache::new(0)),
            manifest_bytes_min: 2048,
        }
    }

    pub(crate) fn open(&self) -> Result<Arc<Catalog>, OpenError> {
        CatalogRecovery::read(self.setup())?.start(&self.executor)
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.disk.list(directory()).unwrap()
    }

    /// The tables and manifests that are there once the remover has run.
    pub(crate) fn files(&self) -> Vec<String> {
        self.executor.run_until_idle();
        self.names()
    }
}

/// Writes a durable table in which each of `keys` has the value `value` at `sequence`.
pub(crate) fn write(catalog: &Catalog, keys: &[&str], sequence: u64) -> TableMeta {
    try_write(catalog, keys, sequence).unwrap()
}

pub(crate) fn try_write(
    catalog: &Catalog,
    keys: &[&str],
    sequence: u64,
) -> Result<TableMeta, StorageError> {
    let entries = keys.iter().map(|key| {
        let value = format!("{key}@{sequence}");
        (key.as_bytes(), Kind::Put, Bytes::from(value))
    });
    write_entries(catalog, entries, sequence)
}

/// Writes a durable table in which each key is deleted or has its sequence number as value.
pub(crate) fn write_changes(
    catalog: &Catalog,
    changes: &[(&Vec<u8>, &bool)],
    sequence: u64,
) -> TableMeta {
    let entries = changes.iter().map(|(key, deleted)| {
        if **deleted {
            (key.as_slice(), Kind::Delete, Bytes::new())
        } else {
            (key.as_slice(), Kind::Put, sequence.to_string().into())
        }
    });
    write_entries(catalog, entries, sequence).unwrap()
}

fn write_entries<'a>(
    catalog: &Catalog,
    entries: impl Iterator<Item = (&'a [u8], Kind, Bytes)>,
    sequence: u64,
) -> Result<TableMeta, StorageError> {
    let birth = catalog.birth(catalog.next_number());
    let options = KeyspaceOptions::default().table();
    let mut writer = SstableWriter::create(&**catalog.vfs(), catalog.directory(), birth, options)?;
    for (key, kind, value) in entries {
        let trailer = Trailer::new(SequenceNumber::new(sequence), kind);
        writer.add(key, trailer, &value)?;
    }
    let summary = writer.finish()?;
    catalog.vfs().sync_dir(catalog.directory())?;
    Ok(TableMeta::new(&summary))
}

/// The state of a keyspace, in a form that can be compared.
pub(crate) type Shape = (u32, u64, Vec<(usize, TableMeta)>);

pub(crate) fn shape(version: &Version) -> Shape {
    let tables = version.tables();
    let tables = tables.map(|(level, table)| (level, table.meta().clone()));
    (
        version.id().get(),
        version.last_sequence().get(),
        tables.collect(),
    )
}

pub(crate) fn state(catalog: &Catalog) -> Arc<Version> {
    catalog
        .keyspace("state", KeyspaceOptions::default())
        .unwrap()
}

/// A flush of `keys` at `sequence` into level 0.
pub(crate) fn flush(catalog: &Catalog, keys: &[&str], sequence: u64) -> Arc<Version> {
    let meta = write(catalog, keys, sequence);
    let change = TableChange {
        added: vec![(0, meta)],
        ..TableChange::default()
    };
    published(catalog.commit(state(catalog).id(), change, |_| {}).unwrap())
}

/// Moves everything into one table of level `level`.
pub(crate) fn merge(catalog: &Catalog, keys: &[&str], sequence: u64, level: usize) -> Arc<Version> {
    let old = state(catalog);
    let change = TableChange {
        added: vec![(level, write(catalog, keys, sequence))],
        removed: all_of(&old),
        last_sequence: None,
    };
    published(catalog.commit(old.id(), change, |_| {}).unwrap())
}

pub(crate) fn all_of(version: &Version) -> Vec<(usize, FileNumber)> {
    let tables = version.tables();
    tables
        .map(|(level, table)| (level, table.meta().number))
        .collect()
}

pub(crate) fn published(committed: Committed) -> Arc<Version> {
    match committed {
        Committed::Published(version) => version,
        Committed::Declined => panic!("the edit was declined"),
    }
}

pub(crate) fn value(version: &Version, key: &str) -> Option<Bytes> {
    let found = version.get(key.as_bytes(), SequenceNumber::MAX).unwrap();
    found.map(|found| found.value)
}
