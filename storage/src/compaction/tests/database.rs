//! Whole databases with tiny limits against a map, through flushes, compactions and restarts.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use kelp_seams::{Clock, Executor, ManualClock, Rng, SeededRng, SteppedExecutor};

use crate::batch::WriteBatch;
use crate::database::{Database, DatabaseOptions, Seams};
use crate::file_number::FileNumber;
use crate::keyspace::Keyspace;
use crate::read_view::{Direction, ReadView};
use crate::vfs::{MemFs, Vfs};

pub(super) type Model = BTreeMap<Bytes, Bytes>;

/// A database that runs when the test says so, and what must be in it.
pub(super) struct Subject {
    pub(super) disk: MemFs,
    pub(super) executor: Arc<SteppedExecutor>,
    pub(super) clock: Arc<ManualClock>,
    pub(super) keyspace: Keyspace,
    pub(super) database: Database,
    pub(super) model: Model,
    pub(super) rng: SeededRng,
    key_count: u64,
}

pub(super) fn directory() -> &'static Path {
    Path::new("/data")
}

pub(super) fn options() -> DatabaseOptions {
    DatabaseOptions {
        memtable_bytes: 2 << 10,
        table_bytes: 512,
        level_base_bytes: 2 << 10,
        level_0_compaction_tables: 2,
        level_0_stop_tables: 8,
        ..DatabaseOptions::for_tests()
    }
}

pub(super) fn open(disk: &MemFs) -> (Database, Arc<SteppedExecutor>, Arc<ManualClock>) {
    open_over(Arc::new(disk.clone()))
}

pub(super) fn open_over(vfs: Arc<dyn Vfs>) -> (Database, Arc<SteppedExecutor>, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new());
    let executor = Arc::new(SteppedExecutor::new(Arc::clone(&clock) as Arc<dyn Clock>));
    let seams = Seams {
        vfs,
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
        rng: Arc::new(SeededRng::new(1)),
        executor: Arc::clone(&executor) as Arc<dyn Executor>,
    };
    let database = Database::open(directory(), options(), seams).unwrap();
    (database, executor, clock)
}

impl Subject {
    pub(super) fn new(seed: u64, key_count: u64) -> Self {
        Self::on(MemFs::new(), seed, key_count)
    }

    pub(super) fn on(disk: MemFs, seed: u64, key_count: u64) -> Self {
        let opened = open(&disk);
        Self::of(disk, opened, seed, key_count)
    }

    /// What was opened on `disk`, perhaps with something in between.
    pub(super) fn of(
        disk: MemFs,
        (database, executor, clock): (Database, Arc<SteppedExecutor>, Arc<ManualClock>),
        seed: u64,
        key_count: u64,
    ) -> Self {
        Self {
            clock,
            keyspace: database.keyspace("state").unwrap(),
            disk,
            executor,
            database,
            model: Model::new(),
            rng: SeededRng::new(seed),
            key_count,
        }
    }

    pub(super) fn below(&self, limit: u64) -> u64 {
        self.rng.next_u64() % limit
    }

    fn key(&self) -> Bytes {
        let number = self.below(self.key_count);
        // Some keys are long, one is empty.
        match number {
            0 => Bytes::new(),
            1..8 => Bytes::from(format!("{number:0>90}")),
            _ => Bytes::from(number.wrapping_mul(0x9E37_79B9).to_be_bytes().to_vec()),
        }
    }

    fn value(&self) -> Bytes {
        let mut value = vec![0; usize::try_from(self.below(60)).unwrap()];
        self.rng.fill(&mut value);
        value.into()
    }

    /// Writes one batch of puts and deletes.
    pub(super) fn write(&mut self) {
        let mut batch = WriteBatch::new();
        for _ in 0..=self.below(6) {
            let key = self.key();
            if self.below(4) == 0 {
                batch.delete(key.clone());
                self.model.remove(&key);
            } else {
                let value = self.value();
                batch.put(key.clone(), value.clone());
                self.model.insert(key, value);
            }
        }
        self.keyspace.write(batch).unwrap();
    }

    /// Flushes everything and lets all background work end.
    pub(super) fn settle(&self) {
        self.keyspace.flush();
        self.executor.run_until_idle();
    }

    /// Everything that was flushed is there after a restart.
    fn reopen(&mut self) {
        self.settle();
        self.database.close();
        let (database, executor, clock) = open(&self.disk);
        self.keyspace = database.keyspace("state").unwrap();
        (self.database, self.executor, self.clock) = (database, executor, clock);
        self.executor.run_until_idle();
    }

    /// Reads some keys and a range in both directions.
    fn check_some(&self) {
        let view = self.keyspace.view();
        for _ in 0..3 {
            let key = self.key();
            assert_eq!(view.get(&key).unwrap(), self.model.get(&key).cloned());
        }
        let (start, end) = (self.key(), self.key());
        let (start, end) = (start.clone().min(end.clone()), start.max(end));
        let bounds = (Bound::Included(start), Bound::Excluded(end));
        check_range(&view, &self.model, &bounds, 30);
    }

    fn check_all(&self) {
        check_all(&self.keyspace.view(), &self.model);
    }

    /// The table files on the disk.
    pub(super) fn table_file_bytes(&self) -> u64 {
        let names = self.disk.list(directory()).unwrap();
        let tables = names
            .iter()
            .filter(|name| FileNumber::from_sstable_name(name).is_some());
        tables
            .map(|name| {
                self.disk
                    .open(&directory().join(name))
                    .unwrap()
                    .len()
                    .unwrap()
            })
            .sum()
    }

    fn deep_levels(&self) -> usize {
        let metrics = self.database.metrics();
        metrics.level_tables[1..]
            .iter()
            .filter(|count| **count > 0)
            .count()
    }
}

pub(super) fn check_all(view: &ReadView, model: &Model) {
    check_range(
        view,
        model,
        &(Bound::Unbounded, Bound::Unbounded),
        usize::MAX,
    );
    for (key, value) in model {
        assert_eq!(view.get(key).unwrap().as_ref(), Some(value));
    }
}

/// The first entries in both directions.
fn check_range(
    view: &ReadView,
    model: &Model,
    bounds: &(Bound<Bytes>, Bound<Bytes>),
    count_max: usize,
) {
    let range = model.range::<Bytes, _>((bounds.0.as_ref(), bounds.1.as_ref()));
    let expected = range.clone().take(count_max);
    let scan = |direction| view.range(bounds.clone(), direction).take(count_max);
    let found = scan(Direction::Forward).map(Result::unwrap);
    assert!(found.eq(expected.map(copy)), "forward");
    let expected = range.rev().take(count_max);
    let found = scan(Direction::Reverse).map(Result::unwrap);
    assert!(found.eq(expected.map(copy)), "in reverse");
}

fn copy((key, value): (&Bytes, &Bytes)) -> (Bytes, Bytes) {
    (key.clone(), value.clone())
}

fn run(seed: u64, actions: usize) -> usize {
    let mut subject = Subject::new(seed, 2_500);
    let mut views: Vec<(ReadView, Model)> = Vec::new();
    let mut levels = 0;
    for _ in 0..actions {
        match subject.below(40) {
            0..24 => subject.write(),
            24..34 => {
                // Work is stopped anywhere.
                for _ in 0..subject.below(12) {
                    subject.executor.step_one();
                }
            }
            34 => subject.settle(),
            35 => views.push((subject.keyspace.view(), subject.model.clone())),
            36 if !views.is_empty() => {
                let place = usize::try_from(subject.below(views.len() as u64)).unwrap();
                let (view, model) = views.swap_remove(place);
                check_all(&view, &model);
            }
            37 if subject.below(10) == 0 => {
                views.clear();
                subject.reopen();
                subject.check_all();
            }
            _ => drop(subject.executor.run_until_idle()),
        }
        subject.check_some();
        levels = levels.max(subject.deep_levels());
    }
    for (view, model) in views {
        check_all(&view, &model);
    }
    subject.settle();
    subject.check_all();
    let metrics = subject.database.metrics();
    assert_eq!((metrics.zombie_tables, metrics.zombie_bytes), (0, 0));
    assert_eq!(
        subject.table_file_bytes(),
        metrics.level_bytes.iter().sum::<u64>()
    );
    levels
}

#[test]
fn any_operations_read_as_a_map_says_while_tables_sink_through_the_levels() {
    for seed in 0..4 {
        let outcome = std::panic::catch_unwind(|| run(seed, 1_500));
        let levels = outcome.unwrap_or_else(|_| panic!("seed {seed} fails"));
        assert!(levels >= 3, "seed {seed} has {levels} levels below L0");
    }
}

#[test]
fn overwriting_everything_many_times_leaves_about_one_copy_on_the_disk() {
    let subject = Subject::new(1, 1);
    let mut live = 0;
    for round in 0..10_u64 {
        live = 0;
        for number in 0..3_000_u64 {
            let mut value = vec![0; 40];
            subject.rng.fill(&mut value);
            value[..8].copy_from_slice(&round.to_be_bytes());
            let key = number.wrapping_mul(0x9E37_79B9).to_be_bytes();
            live += key.len() + value.len();
            let mut batch = WriteBatch::new();
            batch.put(Bytes::copy_from_slice(&key), value);
            subject.keyspace.write(batch).unwrap();
            while !subject.keyspace.has_room() {
                assert!(subject.executor.step_one(), "nothing makes room");
            }
        }
    }
    subject.settle();
    let metrics = subject.database.metrics();
    let bottom = metrics.level_bytes[6];
    let all = subject.table_file_bytes();
    assert_eq!(
        all,
        metrics.level_bytes.iter().sum::<u64>(),
        "no file is left over"
    );
    assert!(
        bottom > live as u64,
        "all of it is there, with what a table costs"
    );
    let options = options();
    let in_l0 = 2 * options.memtable_bytes as u64;
    // Each level may hold a tenth of the one below, and is over that by less than two tables.
    let bound = bottom + bottom / 9 + in_l0 + 5 * 2 * options.table_bytes;
    assert!(
        all <= bound,
        "{all} bytes are more than {bound}; {:?}",
        metrics.level_bytes
    );
    assert_eq!(metrics.compaction_debt_bytes, 0);
    let entries = subject
        .keyspace
        .view()
        .range((Bound::Unbounded, Bound::Unbounded), Direction::Forward);
    assert_eq!(entries.count(), 3_000);
}

#[test]
fn deleting_everything_leaves_next_to_nothing() {
    let mut subject = Subject::new(2, 2_000);
    for _ in 0..2_000 {
        subject.write();
        if !subject.keyspace.has_room() {
            subject.executor.run_until_idle();
        }
    }
    subject.settle();
    let full = subject.table_file_bytes();
    for key in std::mem::take(&mut subject.model).into_keys() {
        let mut batch = WriteBatch::new();
        batch.delete(key);
        subject.keyspace.write(batch).unwrap();
        subject.executor.run_until_idle();
    }
    subject.settle();
    subject.check_all();
    let left = subject.table_file_bytes();
    assert!(left * 10 < full, "{left} of {full} bytes are left");
}

#[test]
fn a_database_at_rest_works_no_more() {
    let mut subject = Subject::new(3, 2_000);
    for _ in 0..500 {
        subject.write();
    }
    subject.settle();
    let before = subject.database.metrics().compaction_written_bytes;
    subject.reopen();
    for _ in 0..3 {
        subject.settle();
    }
    assert_eq!(subject.database.metrics().compaction_written_bytes, 0);
    assert!(before > 0);
}
