//! Measures the in-memory part of a keyspace and prints one table row per size; how to run it and
//! what it gave is in `docs/benchmarks/memtable.md`.

#![expect(clippy::print_stdout, reason = "the table is its result")]

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use kelp_seams::{Clock, Rng, SeededRng, SteppedExecutor, SystemClock};
use kelp_storage::{
    Database, DatabaseOptions, Direction, Keyspace, MemFs, ReadView, Seams, WriteBatch,
};

const SIZES: [usize; 3] = [50_000, 200_000, 1_000_000];
const ROUNDS: usize = 5;
const VALUE_BYTES: usize = 100;
const BATCH_OPERATIONS: usize = 1_000;
const LOOKUPS: usize = 50_000;
const PAGES: usize = 10_000;
const PAGE_ENTRIES: usize = 10;

/// Nanoseconds per operation, in the order of [`COLUMNS`].
type Row = [f64; COLUMNS.len()];

const COLUMNS: [&str; 6] = [
    "insert, alone",
    "insert, batch of 1,000",
    "get",
    "seek + 10 entries",
    "next",
    "previous",
];

fn main() {
    println!(
        "| entries | {} | counted bytes per entry |",
        COLUMNS.join(" | ")
    );
    println!("|{}", "---|".repeat(COLUMNS.len() + 2));
    for size in SIZES {
        let mut rounds: Vec<Row> = Vec::new();
        let mut entry_bytes = 0;
        for round in 0..ROUNDS {
            let (row, bytes) = measure(size, round);
            rounds.push(row);
            entry_bytes = bytes;
        }
        let cells: Vec<_> = (0..COLUMNS.len())
            .map(|column| summary(rounds.iter().map(|row| row[column])))
            .collect();
        println!("| {size} | {} | {entry_bytes} |", cells.join(" | "));
    }
}

/// The median of the rounds and, in parentheses, the fastest and the slowest.
fn summary(rounds: impl Iterator<Item = f64>) -> String {
    let mut rounds: Vec<_> = rounds.collect();
    rounds.sort_by(f64::total_cmp);
    let [fastest, median, slowest] = [0, ROUNDS / 2, ROUNDS - 1].map(|index| rounds[index]);
    format!("{median:.0} ({fastest:.0}..{slowest:.0})")
}

fn measure(size: usize, round: usize) -> (Row, usize) {
    let clock = SystemClock::new();
    let rng = SeededRng::new(u64::try_from(round).expect("rounds are few"));
    let keys: Vec<Bytes> = (0..size).map(|_| key(&rng)).collect();

    let alone = load(&clock, &open_keyspace(), &keys, 1);
    let keyspace = open_keyspace();
    let batched = load(&clock, &keyspace, &keys, BATCH_OPERATIONS);
    let view = keyspace.view();

    let get = time(&clock, LOOKUPS, || {
        for key in probes(&keys, &rng, LOOKUPS) {
            assert!(view.get(key).expect("memory does not fail").is_some());
        }
    });
    let page = time(&clock, PAGES, || {
        for key in probes(&keys, &rng, PAGES) {
            let bounds = (Bound::Included(key.clone()), Bound::Unbounded);
            assert!(
                view.range(bounds, Direction::Forward)
                    .take(PAGE_ENTRIES)
                    .count()
                    > 0
            );
        }
    });
    let next = time(&clock, size, || scan(&view, Direction::Forward));
    let previous = time(&clock, size, || scan(&view, Direction::Reverse));
    let row = [alone, batched, get, page, next, previous];
    (row, keyspace.memtable_usage().bytes / size)
}

fn open_keyspace() -> Keyspace {
    let clock = Arc::new(SystemClock::new());
    let seams = Seams {
        vfs: Arc::new(MemFs::new()),
        clock: clock.clone(),
        rng: Arc::new(SeededRng::new(0)),
        executor: Arc::new(SteppedExecutor::new(clock)),
    };
    let database = Database::open(Path::new("/bench"), DatabaseOptions::default(), seams)
        .expect("an empty directory opens");
    database.keyspace("bench").expect("the database is open")
}

/// A key as the state machine stores it: two bytes of kind and database, then what a user chose.
fn key(rng: &SeededRng) -> Bytes {
    Bytes::from(format!(
        "\u{1}\0user:{:013}",
        rng.next_u64() % 10_u64.pow(13)
    ))
}

fn load(clock: &SystemClock, keyspace: &Keyspace, keys: &[Bytes], operations: usize) -> f64 {
    let batches: Vec<_> = keys.chunks(operations).map(batch).collect();
    time(clock, keys.len(), || {
        for batch in batches {
            keyspace.write(batch).expect("keys and batches are small");
        }
    })
}

/// Keys and values lie in one buffer, as in a decoded log entry.
fn batch(keys: &[Bytes]) -> WriteBatch {
    let mut buffer = BytesMut::new();
    let mut batch = WriteBatch::new();
    for key in keys {
        buffer.put_slice(key);
        let key = buffer.split();
        buffer.put_bytes(7, VALUE_BYTES);
        batch.put(key, buffer.split());
    }
    batch
}

fn probes<'a>(keys: &'a [Bytes], rng: &SeededRng, count: usize) -> impl Iterator<Item = &'a Bytes> {
    let size = u64::try_from(keys.len()).expect("a length fits 64 bits");
    let positions: Vec<_> = (0..count)
        .map(|_| usize::try_from(rng.next_u64() % size).expect("it is below a length"))
        .collect();
    positions.into_iter().map(|position| &keys[position])
}

fn scan(view: &ReadView, direction: Direction) {
    let bounds = (Bound::Unbounded, Bound::Unbounded);
    assert!(view.range(bounds, direction).count() > 0);
}

/// Nanoseconds per operation of `work`, which does `operations` of them.
fn time(clock: &SystemClock, operations: usize, work: impl FnOnce()) -> f64 {
    let start = clock.monotonic();
    work();
    let elapsed = clock.monotonic().saturating_duration_since(start);
    let operations = u32::try_from(operations).expect("sizes fit 32 bits");
    Duration::as_secs_f64(&elapsed) * 1e9 / f64::from(operations)
}
