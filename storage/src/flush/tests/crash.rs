//! A power cut and a kill at every sync of seeded runs of one who appends to a log and applies what
//! it appended to a keyspace: the keyspace comes back as it was after some prefix of the entries,
//! and the log is never behind it.

use std::collections::BTreeMap;
use std::sync::Mutex;

use kelp_seams::Rng;

use super::*;

/// Operations of each entry: the applied record, one put and one delete.
const OPERATIONS: u64 = 3;

/// What entry `index` does: it puts one key and deletes another.
fn keys(index: u64) -> (Bytes, Bytes) {
    let key = |number: u64| Bytes::from(format!("key {:03}", number % 97));
    (key(index * 31), key(index * 17 + 5))
}

/// The state after the first `count` entries.
fn model(count: u64) -> BTreeMap<Bytes, Bytes> {
    let mut state = BTreeMap::new();
    for index in 0..count {
        let (put, delete) = keys(index);
        state.insert(Bytes::from("applied"), Bytes::from(index.to_string()));
        state.insert(put, value(index));
        state.remove(&delete);
    }
    state
}

fn value(index: u64) -> Bytes {
    Bytes::from(vec![index.to_le_bytes()[0]; 150])
}

fn apply(keyspace: &Keyspace, index: u64) {
    let (put, delete) = keys(index);
    let mut batch = WriteBatch::new();
    batch.put("applied", index.to_string());
    batch.put(put, value(index));
    batch.delete(delete);
    keyspace.write(batch).unwrap();
}

/// A disk after the end of the process, and how many entries were in tables for sure.
struct Image {
    disk: MemFs,
    flushed: u64,
    submitted: u64,
}

#[derive(Default)]
struct History {
    flushed: u64,
    submitted: u64,
    images: Vec<Image>,
}

/// The count of entries in the keyspace that `disk` shows; it is the state after exactly these, and
/// the log has them too.
fn check_shown(disk: &MemFs) -> u64 {
    let bench = Bench::on(disk.clone());
    let log = bench.database.log(LogNumber::new(0)).unwrap();
    let logged = log.last().map_or(0, |last| last.index.get() + 1);
    let view = bench.keyspace.view();
    let applied = view.sequence().get() / OPERATIONS;
    assert_eq!(applied * OPERATIONS, view.sequence().get(), "half an entry");
    assert!(
        applied <= logged,
        "{applied} entries were flushed and the log holds {logged}"
    );
    let found: BTreeMap<_, _> = scan(&view, Direction::Forward)
        .unwrap()
        .into_iter()
        .collect();
    assert_eq!(found, model(applied), "no prefix of the entries");
    drop(view);
    bench.run();
    let known = bench.database.metrics().level_tables.iter().sum::<u64>();
    assert_eq!(
        bench.tables().len(),
        usize::try_from(known).unwrap(),
        "orphans"
    );
    applied
}

fn check(image: &Image, rng: &dyn Rng) {
    let shown = check_shown(&image.disk);
    assert!(
        (image.flushed..=image.submitted).contains(&shown),
        "{shown} of {} entries, {} were flushed",
        image.submitted,
        image.flushed
    );
    let again = check_shown(&image.disk.crash_clone(rng));
    assert_eq!(again, shown, "what was shown is durable");
}

/// Runs a while; answers the count of images that were checked.
fn run(seed: u64) -> usize {
    let rng = SeededRng::new(seed);
    let bench = Bench::new();
    let history = Arc::new(Mutex::new(History::default()));
    let (inside, crashes) = (Arc::clone(&history), SeededRng::new(seed + 1_000));
    bench.disk.on_sync(Arc::new(move |_, disk: &MemFs| {
        let mut history = inside.lock().unwrap();
        for disk in [disk.crash_clone(&crashes), disk.kill_clone()] {
            let (flushed, submitted) = (history.flushed, history.submitted);
            history.images.push(Image {
                disk,
                flushed,
                submitted,
            });
        }
    }));
    let (inside, pinned) = (Arc::clone(&history), bench.keyspace.clone());
    bench.keyspace.on_flushed(Arc::new(move || {
        let last = pinned.sources().version().last_sequence().get();
        inside.lock().unwrap().flushed = last / OPERATIONS;
    }));
    let log = bench.database.log(LogNumber::new(0)).unwrap();
    let mut index = 0;
    let mut checked = 0;
    for _ in 0..250 {
        match rng.next_u64() % 16 {
            0..8 => {
                log.append(vec![entry(index, vec![1; 60])], must()).unwrap();
                history.lock().unwrap().submitted = index + 1;
                apply(&bench.keyspace, index);
                index += 1;
            }
            8..13 => {
                for _ in 0..rng.next_u64() % 8 {
                    bench.stage.executor.step_one();
                }
            }
            13 => bench.keyspace.flush(),
            14 => bench.faults.add(FaultRule {
                // The log finds no space for a while; a flush must not overtake it.
                name: Some("*.wal".to_owned()),
                count: rng.next_u64() % 4,
                ..FaultRule::once(Some(FaultOperation::Write), 0, Fault::Errno(ENOSPC))
            }),
            _ => {
                bench.run();
                bench.stage.clock.advance(Duration::from_millis(100));
            }
        }
        let images = std::mem::take(&mut history.lock().unwrap().images);
        checked += images.len();
        for image in &images {
            check(image, &rng);
        }
    }
    // The end of the database writes what waits.
    bench.faults.clear();
    checked
}

#[test]
fn a_power_cut_or_kill_at_any_sync_leaves_a_prefix_that_the_log_holds() {
    let mut checked = 0;
    for seed in 0..6 {
        let outcome = std::panic::catch_unwind(|| run(seed));
        checked += outcome.unwrap_or_else(|_| panic!("seed {seed} fails"));
    }
    assert!(checked > 500, "only {checked} crashes were tried");
}

#[test]
fn a_flush_waits_for_the_log_and_never_overtakes_it() {
    let bench = Bench::new();
    bench.run();
    bench.faults.add(FaultRule {
        name: Some("*.wal".to_owned()),
        count: u64::MAX,
        ..FaultRule::once(Some(FaultOperation::Write), 0, Fault::Errno(ENOSPC))
    });
    let log = bench.database.log(LogNumber::new(0)).unwrap();
    log.append(vec![entry(0, "entry")], must()).unwrap();
    apply(&bench.keyspace, 0);
    bench.flush();
    assert_eq!(bench.database.metrics().flushes, 0);
    assert_eq!(check_shown(&bench.disk.kill_clone()), 0);
    bench.faults.clear();
    bench.stage.clock.advance(Duration::from_millis(100));
    bench.run();
    assert_eq!(bench.database.metrics().flushes, 1);
    assert_eq!(check_shown(&bench.disk.crash_clone(&SeededRng::new(1))), 1);
}
