//! A catalog with one keyspace on a disk in memory, flushes on demand, and the job, which runs
//! when the test says so.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use kelp_seams::{Clock, JobHandle, ManualClock, SteppedExecutor};

use super::super::job::{Compactor, Subject};
use super::*;
use crate::catalog::{
    Catalog, CatalogRecovery, CatalogSetup, Committed, KeyspaceId, KeyspaceOptions, TableChange,
};
use crate::error::StorageError;
use crate::internal_key::{Kind, Trailer};
use crate::metrics::StorageMetrics;
use crate::sstable::{BlockCache, Found, SstableWriter};
use crate::version::Version;
use crate::vfs::{FaultFs, MemFs, Vfs};

pub(super) struct Stage {
    pub(super) disk: MemFs,
    pub(super) faults: FaultFs,
    pub(super) clock: Arc<ManualClock>,
    pub(super) executor: SteppedExecutor,
    pub(super) catalog: Arc<Catalog>,
    pub(super) keyspace: Arc<Shown>,
    pub(super) job: JobHandle,
    counters: Arc<CompactionCounters>,
    written: RefCell<Written>,
}

#[derive(Default)]
struct Written {
    sequence: u64,
    model: BTreeMap<String, String>,
}

/// The keyspace: just its newest version.
pub(super) struct Shown(Mutex<Arc<Version>>);

impl Subject for Shown {
    fn name(&self) -> &'static str {
        "test"
    }

    fn version(&self) -> Arc<Version> {
        Arc::clone(&self.0.lock().unwrap())
    }

    fn publish(&self, version: &Arc<Version>) {
        *self.0.lock().unwrap() = Arc::clone(version);
    }

    fn damaged(&self, id: KeyspaceId, error: StorageError) {
        assert_eq!(id, self.version().id());
        assert!(matches!(error, StorageError::Corruption(_)), "{error}");
    }
}

pub(super) fn directory() -> &'static Path {
    Path::new("/data")
}

impl Stage {
    pub(super) fn new() -> Self {
        let disk = MemFs::new();
        disk.create_dir_all(directory()).unwrap();
        let faults = FaultFs::over(disk.clone());
        let clock = Arc::new(ManualClock::new());
        let executor = SteppedExecutor::new(Arc::clone(&clock) as Arc<dyn Clock>);
        let setup = CatalogSetup {
            vfs: Arc::new(faults.clone()),
            directory: directory().to_owned(),
            database: DatabaseId::from_bytes([7; 16]),
            cache: Arc::new(BlockCache::new(1 << 20)),
            manifest_bytes_min: 4096,
        };
        let recovery = CatalogRecovery::read(setup).unwrap();
        let catalog = recovery.start(&executor).unwrap();
        let options = KeyspaceOptions {
            block_bytes: 128,
            ..KeyspaceOptions::default()
        };
        let version = catalog.keyspace("test", options).unwrap();
        let keyspace = Arc::new(Shown(Mutex::new(version)));
        let counters = Arc::new(CompactionCounters::default());
        let shown = Arc::clone(&keyspace);
        let compactor = Compactor::new(
            Arc::clone(&catalog),
            Box::new(move || vec![Arc::clone(&shown) as Arc<dyn Subject>]),
            options_of_stage(),
            Arc::clone(&clock) as Arc<dyn Clock>,
            Arc::clone(&counters),
        );
        let job = kelp_seams::Executor::spawn(&executor, "compaction", Box::new(compactor));
        executor.run_until_idle();
        Self {
            disk,
            faults,
            clock,
            executor,
            catalog,
            keyspace,
            job,
            counters,
            written: RefCell::default(),
        }
    }

    /// Adds a table to L0 with these changes, in order of their keys; none deletes.
    pub(super) fn flush(&self, changes: &[(&str, Option<&str>)]) {
        let mut written = self.written.borrow_mut();
        let catalog = &self.catalog;
        let birth = catalog.birth(catalog.next_number());
        let options = self.keyspace.version().options().table();
        let (vfs, place) = (&**catalog.vfs(), catalog.directory());
        let mut writer = SstableWriter::create(vfs, place, birth, options).unwrap();
        for (key, value) in changes {
            written.sequence += 1;
            let kind = value.map_or(Kind::Delete, |_| Kind::Put);
            let trailer = Trailer::new(SequenceNumber::new(written.sequence), kind);
            let bytes = value.unwrap_or_default().as_bytes();
            writer.add(key.as_bytes(), trailer, bytes).unwrap();
            match value {
                Some(value) => written.model.insert((*key).to_owned(), (*value).to_owned()),
                None => written.model.remove(*key),
            };
        }
        let summary = writer.finish().unwrap();
        vfs.sync_dir(place).unwrap();
        let change = TableChange {
            added: vec![(0, TableMeta::new(&summary))],
            ..TableChange::default()
        };
        let id = self.keyspace.version().id();
        let publish = |version: &Arc<Version>| self.keyspace.publish(version);
        let committed = catalog.commit(id, change, publish).unwrap();
        assert!(matches!(committed, Committed::Published(_)));
    }

    /// Flushes `count` tables that all hold the same `keys` keys, with values of 100 bytes.
    pub(super) fn flush_many(&self, count: usize, keys: usize) {
        self.flush_wide(count, keys, 100);
    }

    /// The same with values of `width` bytes.
    pub(super) fn flush_wide(&self, count: usize, keys: usize, width: usize) {
        for round in 0..count {
            let lines: Vec<_> = (0..keys)
                .map(|key| (format!("key {key:04}"), format!("{round:0width$}")))
                .collect();
            let changes: Vec<_> = lines
                .iter()
                .map(|(key, value)| (key.as_str(), Some(value.as_str())))
                .collect();
            self.flush(&changes);
        }
    }

    /// Wakes the job and runs everything that is ready.
    pub(super) fn compact(&self) {
        self.job.notify();
        self.executor.run_until_idle();
    }

    pub(super) fn pass(&self, time: Duration) {
        self.clock.advance(time);
        self.executor.run_until_idle();
    }

    pub(super) fn metrics(&self) -> StorageMetrics {
        let mut metrics = StorageMetrics::default();
        self.counters.fill(&mut metrics);
        metrics
    }

    /// The count of tables of each level.
    pub(super) fn table_counts(&self) -> [usize; LEVELS] {
        let version = self.keyspace.version();
        std::array::from_fn(|level| version.level(level).len())
    }

    /// The table files on the disk.
    pub(super) fn files(&self) -> Vec<String> {
        let mut names = self.disk.list(directory()).unwrap();
        names.retain(|name| FileNumber::from_sstable_name(name).is_some());
        names
    }

    /// The files of the tables that are in use.
    pub(super) fn live_files(&self) -> Vec<String> {
        let version = self.keyspace.version();
        let tables = version.tables();
        let mut names: Vec<_> = tables
            .map(|(_, table)| table.meta().number.sstable_name())
            .collect();
        names.sort();
        names
    }

    pub(super) fn get(&self, key: &str) -> Option<String> {
        let version = self.keyspace.version();
        let found = version.get(key.as_bytes(), SequenceNumber::MAX).unwrap()?;
        let value = |found: Found| String::from_utf8(found.value.to_vec()).unwrap();
        (found.kind == Kind::Put).then(|| value(found))
    }

    /// Every key reads as it was written last.
    pub(super) fn check(&self) {
        for (key, value) in &self.written.borrow().model {
            assert_eq!(self.get(key).as_ref(), Some(value), "{key}");
        }
    }
}

pub(super) fn options_of_stage() -> CompactionOptions {
    CompactionOptions {
        table_bytes: 4 << 10,
        level_base_bytes: 32 << 10,
        l0_trigger: 4,
        l0_stop: 20,
    }
}
