//! A power cut and a kill at every sync of a run with flushes, compactions and new manifests.
//!
//! What comes back is the state after some batch: none that was reported flushed is missing, and
//! what one open shows the next one shows too.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kelp_seams::{Rng, SeededRng};

use super::database::{Model, Subject, check_all, directory, open, open_over};
use crate::file_number::FileNumber;
use crate::vfs::{Fault, FaultFs, FaultOperation, FaultRule, MemFs, Vfs};

/// The state after each batch, by the sequence number of its last operation.
type History = BTreeMap<u64, Model>;

struct Image {
    disk: MemFs,
    /// The number up to which a flush was reported.
    flushed: u64,
}

/// Opens the image, checks it, cuts the power again, opens it again, and goes on.
fn check(image: &Image, history: &History, rng: &SeededRng) {
    let (database, executor, _) = open(&image.disk);
    let keyspace = database.keyspace("state").unwrap();
    let view = keyspace.view();
    let shown = view.sequence().get();
    assert!(
        shown >= image.flushed,
        "{shown} is before {}",
        image.flushed
    );
    let model = &history[&shown];
    check_all(&view, model);
    let cut = image.disk.crash_clone(rng);
    executor.run_until_idle();
    check_all(&keyspace.view(), model);
    drop((view, keyspace, database));
    let (database, executor, _) = open(&cut);
    let keyspace = database.keyspace("state").unwrap();
    executor.run_until_idle();
    assert_eq!(
        keyspace.view().sequence().get(),
        shown,
        "what was shown is durable"
    );
    check_all(&keyspace.view(), model);
}

/// A fault of any operation on tables and manifests.
fn random_fault(rng: &SeededRng) -> FaultRule {
    let below = |limit: usize| usize::try_from(rng.next_u64()).unwrap() % limit;
    let names = ["*.sst", "MANIFEST-*", "CURRENT*"];
    let operations = [
        FaultOperation::Create,
        FaultOperation::Open,
        FaultOperation::Read,
        FaultOperation::Write,
        FaultOperation::Sync,
        FaultOperation::Rename,
        FaultOperation::Resize,
    ];
    let faults = [
        Fault::Errno(28),
        Fault::ShortWrite {
            bytes: below(400),
            errno: 5,
        },
        Fault::LostSync { errno: 5 },
    ];
    FaultRule {
        operation: Some(operations[below(operations.len())]),
        name: Some(names[below(names.len())].to_owned()),
        skip: rng.next_u64() % 4,
        count: 1 + rng.next_u64() % 3,
        fault: faults[below(faults.len())],
    }
}

/// Every table on the disk is one of the keyspace, and there is one manifest.
fn check_files(subject: &Subject) {
    let names = subject.disk.list(directory()).unwrap();
    let tables = names
        .iter()
        .filter(|name| FileNumber::from_sstable_name(name).is_some());
    let known = subject.database.metrics().level_tables.iter().sum::<u64>();
    assert_eq!(tables.count(), usize::try_from(known).unwrap());
    let manifests = names
        .iter()
        .filter(|name| FileNumber::from_manifest_name(name).is_some());
    assert_eq!(manifests.count(), 1);
}

fn run(seed: u64, fails: bool) -> (usize, u64, u64) {
    let disk = MemFs::new();
    let faults = FaultFs::over(disk.clone());
    let opened = open_over(Arc::new(faults.clone()));
    let mut subject = Subject::of(disk.clone(), opened, seed, 300);
    subject.settle();
    let history = Arc::new(Mutex::new(History::from([(0, Model::new())])));
    let flushed = Arc::new(Mutex::new(0));
    let (inside, keyspace) = (Arc::clone(&flushed), subject.keyspace.clone());
    subject.keyspace.on_flushed(Arc::new(move || {
        *inside.lock().unwrap() = keyspace.sources().version().last_sequence().get();
    }));
    let images = Arc::new(Mutex::new(Vec::new()));
    let (taken, promised) = (Arc::clone(&images), Arc::clone(&flushed));
    let crashes = SeededRng::new(subject.rng.next_u64());
    disk.on_sync(Arc::new(move |_, disk: &MemFs| {
        let flushed = *promised.lock().unwrap();
        let clones = [disk.crash_clone(&crashes), disk.kill_clone()];
        taken
            .lock()
            .unwrap()
            .extend(clones.map(|disk| Image { disk, flushed }));
    }));
    let (mut checked, rng) = (0, SeededRng::new(seed));
    for _ in 0..80 {
        if fails {
            // Long enough for every pause after a failure.
            subject.clock.advance(Duration::from_secs(20));
            if subject.below(3) == 0 {
                faults.add(random_fault(&subject.rng));
            }
        }
        subject.write();
        let sequence = subject.keyspace.view().sequence().get();
        history
            .lock()
            .unwrap()
            .insert(sequence, subject.model.clone());
        match subject.below(3) {
            0 => drop(subject.executor.run_until_idle()),
            1 => drop(subject.executor.step_one()),
            _ if subject.below(4) == 0 => subject.settle(),
            _ => {}
        }
        let taken = std::mem::take(&mut *images.lock().unwrap());
        checked += taken.len();
        for image in &taken {
            check(image, &history.lock().unwrap(), &rng);
        }
    }
    let metrics = subject.database.metrics();
    disk.on_sync(Arc::new(|_, _| {}));
    faults.clear();
    for _ in 0..3 {
        subject.clock.advance(Duration::from_secs(20));
        subject.settle();
    }
    assert_eq!(subject.database.metrics().memtables, 0);
    let failures = metrics.flush_failures + metrics.compaction_failures;
    assert_eq!(failures > 0, fails);
    check_all(&subject.keyspace.view(), &subject.model);
    check_files(&subject);
    (checked, metrics.compactions, metrics.manifest_rolls)
}

#[test]
fn a_power_cut_or_kill_of_a_disk_that_fails_loses_nothing_that_was_flushed() {
    for seed in 0..2 {
        let outcome = std::panic::catch_unwind(|| run(seed, true));
        let (checked, _, rolls) = outcome.unwrap_or_else(|_| panic!("seed {seed} fails"));
        assert!(
            checked > 100 && rolls > 2,
            "only {checked} crashes were tried, with {rolls} manifests"
        );
    }
}
