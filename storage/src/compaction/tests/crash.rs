//! A power cut and a kill at every sync of a run with flushes, compactions and new manifests.
//!
//! What comes back is the state after some batch: none that was reported flushed is missing, and
//! what one open shows the next one shows too.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use kelp_seams::{Rng, SeededRng};

use super::database::{Model, Subject, check_all, open};
use crate::vfs::MemFs;

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

fn run(seed: u64) -> (usize, u64, u64) {
    let disk = MemFs::new();
    let mut subject = Subject::on(disk.clone(), seed, 300);
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
    (checked, metrics.compactions, metrics.manifest_rolls)
}

#[test]
fn a_power_cut_or_kill_at_any_sync_loses_nothing_that_was_flushed() {
    for seed in 0..2 {
        let outcome = std::panic::catch_unwind(|| run(seed));
        let (checked, compactions, rolls) = outcome.unwrap_or_else(|_| panic!("seed {seed} fails"));
        assert!(checked > 300, "only {checked} crashes were tried");
        assert!(
            compactions > 10 && rolls > 3,
            "{compactions} compactions, {rolls} manifests"
        );
    }
}
