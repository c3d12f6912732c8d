//! A power cut and a kill at every sync of seeded workloads: what comes back is the state after some
//! prefix of what was submitted, and never less than what was reported durable, or was shown by an
//! open before.

use kelp_seams::{Rng, SeededRng};

use super::stage::{Snapshot, Stage, directory, term};
use super::*;
use crate::log::{LogEntry, LogIndex, LogPosition};
use crate::vfs::MemFs;

const LOGS: usize = 2;
const OWNER: &[u8] = b"owner";
type State = [Snapshot; LOGS];

/// The states after each submission, and how many of those are durable for sure.
#[derive(Default)]
struct History {
    states: Vec<State>,
    durable: usize,
    boot: u64,
    bound: bool,
}

/// A disk after a power cut or a kill, and what must be on it.
struct Image {
    disk: MemFs,
    /// Only the process died: what was written is visible, though perhaps not durable.
    killed: bool,
    durable: usize,
    submitted: usize,
    boot: u64,
    bound: bool,
}

impl Image {
    fn take(disk: MemFs, killed: bool, history: &History) -> Self {
        Self {
            disk,
            killed,
            durable: history.durable,
            submitted: history.states.len() - 1,
            boot: history.boot,
            bound: history.bound,
        }
    }
}

struct Workload {
    rng: SeededRng,
    disk: MemFs,
    stage: Stage,
    database: Option<Database>,
    history: Arc<Mutex<History>>,
    images: Arc<Mutex<Vec<Image>>>,
    current: State,
    checked: usize,
}

impl Workload {
    fn new(seed: u64) -> Self {
        let history = History {
            states: vec![State::default()],
            ..History::default()
        };
        Self::on(MemFs::new(), history, SeededRng::new(seed))
    }

    /// Goes on with a disk and what is known to be on it.
    fn on(disk: MemFs, history: History, rng: SeededRng) -> Self {
        let current = history.states.last().unwrap().clone();
        let history = Arc::new(Mutex::new(history));
        let images = Arc::new(Mutex::new(Vec::new()));
        let crashes = SeededRng::new(rng.next_u64());
        let (inside, taken) = (Arc::clone(&history), Arc::clone(&images));
        disk.on_sync(Arc::new(move |_, disk: &MemFs| {
            let history = inside.lock().unwrap();
            let mut taken = taken.lock().unwrap();
            taken.push(Image::take(disk.crash_clone(&crashes), false, &history));
            taken.push(Image::take(disk.kill_clone(), true, &history));
        }));
        let stage = Stage::new(Arc::new(disk.clone()));
        Self {
            rng,
            disk,
            stage,
            database: None,
            history,
            images,
            current,
            checked: 0,
        }
    }

    fn below(&self, limit: u64) -> u64 {
        self.rng.next_u64() % limit
    }

    fn log(&mut self, number: usize) -> Log {
        let database = self.database.get_or_insert_with(|| {
            let database = self.stage.open().unwrap();
            let boot = database.raise_boot().unwrap();
            self.history.lock().unwrap().boot = boot.get();
            database.bind(OWNER).unwrap();
            self.history.lock().unwrap().bound = true;
            database
        });
        database
            .log(LogNumber::new(u32::try_from(number).unwrap()))
            .unwrap()
    }

    /// Takes note of a submission; answers the callback that makes it count as durable.
    fn submitted(&self) -> (usize, crate::log::Durable) {
        let mut history = self.history.lock().unwrap();
        history.states.push(self.current.clone());
        let number = history.states.len() - 1;
        let inside = Arc::clone(&self.history);
        let callback = Box::new(move |result: Result<(), StorageError>| {
            result.unwrap();
            let mut history = inside.lock().unwrap();
            assert!(history.durable < number, "callbacks come once and in order");
            history.durable = number;
        });
        (number, callback)
    }

    fn append(&mut self, number: usize) {
        let log = self.log(number);
        let last = log.last().or(log.purged());
        let mut index = last.map_or(LogIndex::new(0), |last| last.index.next());
        let mut added = Vec::new();
        for _ in 0..=self.below(3) {
            let bytes_max = if self.below(8) == 0 { 3_000 } else { 200 };
            let mut payload = vec![0; usize::try_from(self.below(bytes_max)).unwrap()];
            self.rng.fill(&mut payload);
            let entry = LogEntry {
                index,
                term: term(self.below(3)),
                payload: payload.into(),
            };
            added.push(entry);
            index = index.next();
        }
        // Each entry is a record of its own; only the last one is known to be durable.
        for (count, entry) in added.iter().enumerate() {
            self.current[number].entries.push(entry.clone());
            if count + 1 < added.len() {
                drop(self.submitted());
            }
        }
        let (_, callback) = self.submitted();
        log.append(added, callback).unwrap();
    }

    fn vote(&mut self, number: usize) {
        let log = self.log(number);
        let vote = self.rng.next_u64().to_le_bytes();
        self.current[number].vote = Some(Bytes::copy_from_slice(&vote));
        let (_, callback) = self.submitted();
        log.put_vote(&vote, callback).unwrap();
    }

    fn truncate(&mut self, number: usize) {
        let log = self.log(number);
        let Some(last) = log.last() else { return };
        let from = LogIndex::new(last.index.get().saturating_sub(self.below(3)));
        self.current[number]
            .entries
            .retain(|entry| entry.index < from);
        drop(self.submitted());
        log.truncate_suffix(from).unwrap();
    }

    fn discard(&mut self, number: usize) {
        let log = self.log(number);
        let Some(last) = log.last() else { return };
        let through = if self.below(10) == 0 {
            LogPosition {
                index: LogIndex::new(last.index.get() + 5),
                term: term(9),
            }
        } else {
            log.position(LogIndex::new(
                last.index.get().saturating_sub(self.below(8)),
            ))
            .unwrap_or(last)
        };
        self.current[number]
            .entries
            .retain(|entry| entry.index > through.index);
        self.current[number].purged = Some(through);
        drop(self.submitted());
        log.discard_prefix(through).unwrap();
    }

    fn commit(&mut self, number: usize) {
        let log = self.log(number);
        let Some(last) = log.last() else { return };
        if log.committed() == Some(last) {
            return;
        }
        self.current[number].committed = Some(last);
        drop(self.submitted());
        log.put_committed(last).unwrap();
    }

    fn reopen(&mut self) {
        let everything = self.history.lock().unwrap().states.len() - 1;
        if let Some(database) = self.database.take() {
            database.close();
            self.history.lock().unwrap().durable = everything;
        }
    }

    /// Cuts the power and goes on with what is left.
    fn crash(&mut self) {
        let rng = SeededRng::new(self.rng.next_u64());
        let cut = self.disk.crash_clone(&rng);
        let image = Image::take(cut, false, &self.history.lock().unwrap());
        // Nothing is pending on the image, so its crash clone is a copy; looking changes the copy.
        let look = Stage::new(Arc::new(image.disk.crash_clone(&rng)));
        let database = look.open().unwrap();
        let found = states(&database);
        let history = self.history.lock().unwrap();
        assert!(
            history.states[image.durable..].contains(&found),
            "the state is no submission"
        );
        let (boot, bound) = (database.boot().get(), history.bound);
        drop((history, database));
        let history = History {
            states: vec![found],
            durable: 0,
            boot,
            bound,
        };
        let checked = self.checked;
        *self = Self {
            checked,
            ..Self::on(image.disk, history, rng)
        };
    }

    /// Kills the process, not the machine: what was written stays visible, synced or not.
    fn kill(&mut self) {
        let Some(database) = self.database.take() else {
            return;
        };
        database.shared.wal.stop_jobs();
        drop(lock(&database.shared.lock).take());
        std::mem::forget(database);
        self.stage = Stage::new(Arc::new(self.disk.clone()));
        drop(self.log(0));
        self.check_images();
        let found = states(self.database.as_ref().unwrap());
        let mut history = self.history.lock().unwrap();
        assert!(
            history.states[history.durable..].contains(&found),
            "the state is no submission"
        );
        history.states = vec![found.clone()];
        history.durable = 0;
        self.current = found;
    }

    /// Checks the disks after all power cuts since the last check.
    fn check_images(&mut self) {
        let images = std::mem::take(&mut *self.images.lock().unwrap());
        let history = self.history.lock().unwrap();
        for image in &images {
            check(image, &history, &self.rng);
        }
        self.checked += images.len();
    }

    fn act(&mut self) {
        let number = usize::from(self.below(3) == 0);
        match self.below(24) {
            0..10 => self.append(number),
            10..12 => self.vote(number),
            12..14 => self.truncate(number),
            14..17 => self.discard(number),
            17..19 => self.commit(number),
            19 => self.stage.idle(),
            20 => self.reopen(),
            21 => self.crash(),
            22 => self.kill(),
            _ => {
                self.stage.executor.run_until_idle();
            }
        }
    }
}

fn states(database: &Database) -> State {
    [0, 1].map(|number| Snapshot::of(&database.log(LogNumber::new(number)).unwrap()))
}

/// What an open shows.
#[derive(Debug, PartialEq, Eq)]
struct Shown {
    states: State,
    boot: u64,
    owner: Option<Bytes>,
}

impl Shown {
    fn by(database: &Database) -> Self {
        Self {
            states: states(database),
            boot: database.boot().get(),
            owner: database.owner(),
        }
    }

    /// No less than what was durable, no more than what was submitted.
    fn check(&self, image: &Image, history: &History) {
        let allowed = &history.states[image.durable..=image.submitted];
        assert!(
            allowed.contains(&self.states),
            "the state is none of the submissions {}..={}, killed: {}",
            image.durable,
            image.submitted,
            image.killed
        );
        assert!(
            !image.bound || self.owner.as_deref() == Some(OWNER),
            "the owner is lost"
        );
        assert!(self.boot >= image.boot, "the boot count went back");
    }
}

/// Opens the image, cuts the power while it is being repaired and afterwards, opens it again, goes
/// on writing.
fn check(image: &Image, history: &History, rng: &SeededRng) {
    let during: Arc<Mutex<Vec<MemFs>>> = Arc::default();
    let (inside, crashes) = (Arc::clone(&during), SeededRng::new(rng.next_u64()));
    image.disk.on_sync(Arc::new(move |_, disk: &MemFs| {
        inside.lock().unwrap().push(disk.crash_clone(&crashes));
    }));
    let stage = Stage::new(Arc::new(image.disk.clone()));
    let database = stage.open().unwrap();
    let shown = Shown::by(&database);
    shown.check(image, history);
    let after = image.disk.crash_clone(rng);
    for disk in std::mem::take(&mut *during.lock().unwrap()) {
        let stage = Stage::new(Arc::new(disk));
        let database = stage.open().unwrap();
        if image.killed {
            // Nobody was shown anything yet.
            Shown::by(&database).check(image, history);
        } else {
            assert_eq!(Shown::by(&database), shown, "a repair changes nothing");
        }
    }
    let stage = Stage::new(Arc::new(after));
    let database = stage.open().unwrap();
    assert_eq!(Shown::by(&database), shown, "what was shown is durable");
    check_goes_on(&stage, database, shown.states);
}

/// A repaired log takes entries and keeps them.
fn check_goes_on(stage: &Stage, database: Database, found: State) {
    let log = database.log(LogNumber::new(0)).unwrap();
    let index = log
        .last()
        .or(log.purged())
        .map_or(LogIndex::new(0), |last| last.index.next());
    let entry = LogEntry {
        index,
        term: term(77),
        payload: Bytes::from_static(b"more"),
    };
    log.append(vec![entry.clone()], Box::new(|result| result.unwrap()))
        .unwrap();
    stage.executor.run_until_idle();
    drop((log, database));
    let mut expected = found;
    expected[0].entries.push(entry);
    assert_eq!(
        states(&stage.open().unwrap()),
        expected,
        "the repaired log goes on"
    );
}

fn run(seed: u64, action_count: usize) -> usize {
    let mut workload = Workload::new(seed);
    for _ in 0..action_count {
        workload.act();
        workload.check_images();
    }
    assert!(workload.disk.exists(directory()).unwrap());
    workload.disk.on_sync(Arc::new(|_, _| {}));
    workload.reopen();
    workload.log(0);
    assert_eq!(
        states(workload.database.as_ref().unwrap()),
        workload.current
    );
    workload.checked
}

#[test]
fn a_power_cut_or_kill_at_any_sync_leaves_a_prefix_with_all_that_was_durable_or_shown() {
    let mut checked = 0;
    for seed in 0..8 {
        let outcome = std::panic::catch_unwind(|| run(seed, 120));
        checked += outcome.unwrap_or_else(|_| panic!("seed {seed} fails"));
    }
    assert!(checked > 1_000, "only {checked} crashes were tried");
}

#[test]
fn files_filled_by_records_nobody_waits_for_are_durable_before_the_next_one() {
    let disk = MemFs::new();
    let stage = Stage::new(Arc::new(disk.clone()));
    let database = stage.open().unwrap();
    let log = database.log(LogNumber::new(0)).unwrap();
    let rng = SeededRng::new(3);
    for index in 0..100 {
        log.put_committed(LogPosition {
            index: LogIndex::new(index),
            term: term(1),
        })
        .unwrap();
        stage.idle();
        let image = Stage::new(Arc::new(disk.crash_clone(&rng)));
        let found = image
            .open()
            .unwrap()
            .log(LogNumber::new(0))
            .unwrap()
            .committed();
        assert!(found.is_none_or(|found| found.index <= LogIndex::new(index)));
    }
    assert!(database.metrics().wal_files > 1);
}
