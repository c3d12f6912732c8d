//! A power cut and a kill at every sync of seeded sequences of flushes, merges, installs and
//! manifests that are full: what comes back is the state after some prefix of the edits, and never
//! less than what was acknowledged.

use std::sync::Mutex;

use kelp_seams::{Rng, SeededRng};

use super::shelf::*;
use crate::catalog::*;
use crate::pinned::PinnedVersion;
use crate::staging::Staging;
use crate::vfs::MemFs;

/// The states after each edit that was begun, and how many of those were acknowledged.
#[derive(Default)]
struct History {
    states: Vec<Shape>,
    acknowledged: usize,
}

/// A disk after a crash, and what must be on it.
struct Image {
    disk: MemFs,
    acknowledged: usize,
    begun: usize,
}

struct Workload {
    rng: SeededRng,
    shelf: Shelf,
    catalog: Arc<Catalog>,
    history: Arc<Mutex<History>>,
    images: Arc<Mutex<Vec<Image>>>,
    sequence: u64,
    checked: usize,
}

impl Workload {
    fn new(seed: u64) -> Self {
        let rng = SeededRng::new(seed);
        let shelf = Shelf::new(MemFs::new());
        let catalog = shelf.open().unwrap();
        let history = History {
            states: vec![shape(&state(&catalog))],
            acknowledged: 0,
        };
        let history = Arc::new(Mutex::new(history));
        let images = Arc::new(Mutex::new(Vec::new()));
        let crashes = SeededRng::new(rng.next_u64());
        let (inside, taken) = (Arc::clone(&history), Arc::clone(&images));
        shelf.disk.on_sync(Arc::new(move |_, disk: &MemFs| {
            let history = inside.lock().unwrap();
            let mut taken = taken.lock().unwrap();
            for disk in [disk.crash_clone(&crashes), disk.kill_clone()] {
                taken.push(Image {
                    disk,
                    acknowledged: history.acknowledged,
                    begun: history.states.len() - 1,
                });
            }
        }));
        Self {
            rng,
            shelf,
            catalog,
            history,
            images,
            sequence: 0,
            checked: 0,
        }
    }

    fn below(&self, limit: u64) -> u64 {
        self.rng.next_u64() % limit
    }

    /// Does an edit that leads to `expected`.
    fn edit(&self, expected: &Shape, edit: impl FnOnce() -> Committed) {
        self.history.lock().unwrap().states.push(expected.clone());
        let version = published(edit());
        assert_eq!(shape(&version), *expected);
        let mut history = self.history.lock().unwrap();
        history.acknowledged = history.states.len() - 1;
    }

    fn flush(&mut self) {
        self.sequence += 1;
        let keys = if self.below(2) == 0 {
            ["a", "m"]
        } else {
            ["b", "z"]
        };
        let old = state(&self.catalog);
        let mut meta = write(&self.catalog, &keys, self.sequence);
        let epochs = old.tables().map(|(_, table)| table.meta().epoch);
        meta.epoch = epochs.max().unwrap_or(0) + 1;
        let (id, last, mut tables) = shape(&old);
        tables.insert(0, (0, meta.clone()));
        let change = TableChange {
            added: vec![(0, meta)],
            ..TableChange::default()
        };
        self.edit(&(id, last.max(self.sequence), tables), || {
            self.catalog.commit(old.id(), change, |_| {}).unwrap()
        });
    }

    fn merge(&mut self) {
        let old = state(&self.catalog);
        if old.is_empty() {
            return;
        }
        let (id, last, _) = shape(&old);
        let mut meta = write(&self.catalog, &["a", "b", "m", "z"], last);
        meta.epoch = 1;
        let expected = (id, last, vec![(6, meta.clone())]);
        let change = TableChange {
            added: vec![(6, meta)],
            removed: all_of(&old),
            last_sequence: None,
        };
        self.edit(&expected, || {
            self.catalog.commit(old.id(), change, |_| {}).unwrap()
        });
    }

    /// Installs a copy of the keyspace in its own place.
    fn replace(&mut self) {
        let old = state(&self.catalog);
        let pinned = PinnedVersion::new(Arc::clone(&old));
        let mut staging = Staging::new(&self.catalog, &pinned.description()).unwrap();
        for index in 0..pinned.file_count() {
            let bytes = pinned.read(index, 0, usize::MAX).unwrap();
            staging.write(index, 0, &bytes).unwrap();
        }
        let staged = staging.finish().unwrap();
        let (_, last, tables) = shape(staged.version());
        let expected = (old.id().get() + 1, last, tables);
        self.edit(&expected, || {
            let sequence_min = SequenceNumber::ZERO;
            self.catalog
                .replace(old.id(), staged, sequence_min, |_| {})
                .unwrap()
        });
    }

    fn reopen(&mut self) {
        let expected = shape(&state(&self.catalog));
        self.catalog.stop();
        self.catalog = self.shelf.open().unwrap();
        assert_eq!(shape(&state(&self.catalog)), expected);
    }

    fn act(&mut self) {
        match self.below(12) {
            0..6 => self.flush(),
            6..8 => self.merge(),
            8 => self.replace(),
            9 => self.reopen(),
            _ => {
                self.shelf.executor.run_until_idle();
            }
        }
    }

    fn check_images(&mut self) {
        let images = std::mem::take(&mut *self.images.lock().unwrap());
        let history = self.history.lock().unwrap();
        for image in &images {
            check(image, &history, &self.rng);
        }
        self.checked += images.len();
    }
}

/// Opens the image, cuts the power while that makes it durable and afterwards, opens it again, goes
/// on with it.
fn check(image: &Image, history: &History, rng: &SeededRng) {
    let allowed = &history.states[image.acknowledged..=image.begun];
    let during: Arc<Mutex<Vec<MemFs>>> = Arc::default();
    let (inside, crashes) = (Arc::clone(&during), SeededRng::new(rng.next_u64()));
    image.disk.on_sync(Arc::new(move |_, disk: &MemFs| {
        inside.lock().unwrap().push(disk.crash_clone(&crashes));
    }));
    let shelf = Shelf::new(image.disk.clone());
    let catalog = shelf.open().unwrap();
    let shown = shape(&state(&catalog));
    assert!(allowed.contains(&shown), "{shown:?} is none of the edits");
    assert_exact_files(&shelf, &catalog);
    image.disk.on_sync(Arc::new(|_, _| {}));
    let after = image.disk.crash_clone(rng);
    for disk in std::mem::take(&mut *during.lock().unwrap()) {
        let catalog = Shelf::new(disk).open().unwrap();
        let found = shape(&state(&catalog));
        assert!(allowed.contains(&found), "{found:?} is none of the edits");
    }
    let shelf = Shelf::new(after);
    let catalog = shelf.open().unwrap();
    assert_eq!(shape(&state(&catalog)), shown, "what was shown is durable");
    let version = flush(&catalog, &["more"], 1 << 40);
    let expected = shape(&version);
    drop((catalog, version));
    let catalog = shelf.open().unwrap();
    assert_eq!(shape(&state(&catalog)), expected, "it goes on");
    assert_eq!(
        value(&state(&catalog), "more").unwrap(),
        "more@1099511627776"
    );
}

/// The directory holds CURRENT, one manifest and the tables of the state, nothing else.
fn assert_exact_files(shelf: &Shelf, catalog: &Catalog) {
    let tables = state(catalog).tables().count();
    let names = shelf.files();
    assert_eq!(names.len(), tables + 2, "{names:?}");
}

fn run(seed: u64, action_count: usize) -> (usize, u64) {
    let mut workload = Workload::new(seed);
    let mut rolls = 0;
    for _ in 0..action_count {
        workload.act();
        workload.check_images();
        rolls = rolls.max(workload.catalog.metrics().manifest_rolls);
    }
    (workload.checked, rolls)
}

#[test]
fn a_power_cut_or_kill_at_any_sync_leaves_a_prefix_with_all_that_was_acknowledged() {
    let (mut checked, mut rolls) = (0, 0);
    for seed in 0..12 {
        let outcome = std::panic::catch_unwind(|| run(seed, 60));
        let outcome = outcome.unwrap_or_else(|_| panic!("seed {seed} fails"));
        checked += outcome.0;
        rolls += outcome.1;
    }
    assert!(checked > 2_000, "only {checked} crashes were tried");
    assert!(rolls > 12, "only {rolls} manifests were written");
}

#[test]
fn a_power_cut_or_kill_at_any_sync_of_the_first_open_is_opened_again() {
    let disk = MemFs::new();
    let images: Arc<Mutex<Vec<MemFs>>> = Arc::default();
    let (inside, crashes) = (Arc::clone(&images), SeededRng::new(5));
    disk.on_sync(Arc::new(move |_, disk: &MemFs| {
        let mut images = inside.lock().unwrap();
        images.extend((0..20).map(|_| disk.crash_clone(&crashes)));
        images.push(disk.kill_clone());
    }));
    drop(Shelf::new(disk).open().unwrap());
    let images = std::mem::take(&mut *images.lock().unwrap());
    assert!(images.len() > 80);
    for disk in images {
        let shelf = Shelf::new(disk);
        let catalog = shelf.open().unwrap();
        let expected = shape(&flush(&catalog, &["a"], 1));
        assert_eq!(shape(&state(&shelf.open().unwrap())), expected);
        assert_exact_files(&shelf, &catalog);
    }
}
