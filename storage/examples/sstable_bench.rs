//! Measures one sstable on a real file and prints a table; how to run it and what it gave is in
//! `docs/benchmarks/sstable.md`.

#![expect(clippy::print_stdout, reason = "the table is its result")]

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use kelp_seams::{Rng, SeededRng};
use kelp_storage::benching::{BenchOptions, BenchTable};
use kelp_storage::{Direction, RealFs};
use rustix::time::{ClockId, clock_gettime};

const ENTRIES: usize = 500_000;
const ROUNDS: usize = 5;
const VALUE_BYTES: usize = 100;
const LOOKUPS: usize = 100_000;
const PAGES: usize = 20_000;
const PAGE_ENTRIES: usize = 10;
/// Larger than the table.
const CACHE_BYTES: u64 = 256 << 20;

const ROWS: [&str; 10] = [
    "build, MB/s of keys and values",
    "get, block not cached, ns",
    "get, block cached, ns",
    "get from memory only, ns",
    "get of an absent key, ns",
    "the same without filter, block cached, ns",
    "the same without filter or cache, ns",
    "seek + 10 entries, ns",
    "next, ns per entry",
    "previous, ns per entry",
];

fn main() {
    println!("| | raw | LZ4 |");
    println!("|---|---|---|");
    let columns = [false, true].map(|compressed| {
        let rounds: Vec<_> = (0..ROUNDS)
            .map(|round| measure(round, compressed))
            .collect();
        (0..ROWS.len())
            .map(|row| summary(rounds.iter().map(|round| round.0[row])))
            .chain(rounds.last().map(|round| round.1.clone()))
            .collect::<Vec<_>>()
    });
    let rows = ROWS.iter().copied().chain(["file MB, pinned KB"]);
    for ((name, raw), compressed) in rows.zip(&columns[0]).zip(&columns[1]) {
        println!("| {name} | {raw} | {compressed} |");
    }
}

/// The median of the rounds and, in parentheses, the smallest and the largest.
fn summary(rounds: impl Iterator<Item = f64>) -> String {
    let mut rounds: Vec<_> = rounds.collect();
    rounds.sort_by(f64::total_cmp);
    let [smallest, median, largest] = [0, ROUNDS / 2, ROUNDS - 1].map(|index| rounds[index]);
    format!("{median:.0} ({smallest:.0}..{largest:.0})")
}

fn measure(round: usize, compressed: bool) -> ([f64; ROWS.len()], String) {
    let rng = SeededRng::new(u64::try_from(round).expect("rounds are few"));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let entries = entries(&rng);
    let build = |number, cache_bytes, filtered| {
        let how = BenchOptions {
            compressed,
            cache_bytes,
            filtered,
        };
        BenchTable::build(&RealFs, directory.path(), number, &entries, how).expect("the disk works")
    };
    let mut uncached = None;
    let build_nanos = time(1, || uncached = Some(build(1, 0, true)));
    let uncached = uncached.expect("it was built");
    let table = build(2, CACHE_BYTES, true);
    let unfiltered = [build(3, CACHE_BYTES, false), build(4, 0, false)];
    let keys: Vec<&Bytes> = entries.iter().map(|(key, _)| key).collect();

    let bytes: usize = entries
        .iter()
        .map(|(key, value)| key.len() + value.len())
        .sum();
    let megabytes = f64::from(u32::try_from(bytes).expect("the table is small")) / 1e6;
    let build = megabytes / (build_nanos / 1e9);
    let [miss, hit, memory, absent] = lookups(&uncached, &table, &keys, &rng);
    let [searched, read] = unfiltered.map(|table| absent_without_filter(&table, &keys, &rng));
    let [page, next, previous] = scans(&table, &keys, &rng);
    let sizes = format!(
        "{}, {}",
        table.bytes() / 1_000_000,
        table.pinned_bytes() / 1_000
    );
    (
        [
            build, miss, hit, memory, absent, searched, read, page, next, previous,
        ],
        sizes,
    )
}

fn lookups(
    uncached: &BenchTable,
    table: &BenchTable,
    keys: &[&Bytes],
    rng: &SeededRng,
) -> [f64; 4] {
    let get = |table: &BenchTable, key: &[u8]| table.get(key).expect("the disk works");
    let picked = picked(keys, rng, LOOKUPS);
    let miss = time(LOOKUPS, || {
        for key in &picked {
            assert!(get(uncached, key).is_some());
        }
    });
    for key in keys {
        assert!(get(table, key).is_some());
    }
    let hit = time(LOOKUPS, || {
        for key in &picked {
            assert!(get(table, key).is_some());
        }
    });
    let memory = time(LOOKUPS, || {
        for key in &picked {
            assert!(matches!(table.get_cached(key), Ok(Some(_))));
        }
    });
    [miss, hit, memory, absent(table, rng)]
}

/// Lookups of keys that hardly ever exist.
fn absent(table: &BenchTable, rng: &SeededRng) -> f64 {
    let absent: Vec<_> = (0..LOOKUPS).map(|_| key(rng)).collect();
    time(LOOKUPS, || {
        for key in &absent {
            let _ = table.get(key).expect("the disk works");
        }
    })
}

/// The same once every block has been asked for, so that it is cached where there is a cache.
fn absent_without_filter(table: &BenchTable, keys: &[&Bytes], rng: &SeededRng) -> f64 {
    for key in keys {
        assert!(table.get(key).expect("the disk works").is_some());
    }
    absent(table, rng)
}

fn scans(table: &BenchTable, keys: &[&Bytes], rng: &SeededRng) -> [f64; 3] {
    let scan =
        |start, count, direction| table.scan(start, count, direction).expect("the disk works");
    let starts = picked(keys, rng, PAGES);
    let page = time(PAGES, || {
        for key in starts {
            assert!(scan(key, PAGE_ENTRIES, Direction::Forward) > 0);
        }
    });
    let (first, last) = (keys[0], keys[keys.len() - 1]);
    let next = time(keys.len(), || {
        assert_eq!(scan(first, ENTRIES, Direction::Forward), keys.len());
    });
    let previous = time(keys.len(), || {
        assert_eq!(scan(last, ENTRIES, Direction::Reverse), keys.len());
    });
    [page, next, previous]
}

fn picked<'a>(keys: &[&'a Bytes], rng: &SeededRng, count: usize) -> Vec<&'a Bytes> {
    let limit = u64::try_from(keys.len()).expect("a length fits 64 bits");
    let position = || usize::try_from(rng.next_u64() % limit).expect("it is below a length");
    (0..count).map(|_| keys[position()]).collect()
}

/// Sorted keys as the state machine stores them: two bytes of kind and database, then what a user
/// chose. Half of each value is random.
fn entries(rng: &SeededRng) -> Vec<(Bytes, Bytes)> {
    let mut keys: Vec<_> = (0..ENTRIES).map(|_| key(rng)).collect();
    keys.sort();
    keys.dedup();
    let value = |_: &Bytes| {
        let mut value = BytesMut::new();
        while value.len() < VALUE_BYTES / 2 {
            value.put_u64(rng.next_u64());
        }
        value.put_bytes(7, VALUE_BYTES - value.len());
        value.freeze()
    };
    let values: Vec<_> = keys.iter().map(value).collect();
    keys.into_iter().zip(values).collect()
}

fn key(rng: &SeededRng) -> Bytes {
    Bytes::from(format!(
        "\u{1}\0user:{:013}",
        rng.next_u64() % 10_u64.pow(13)
    ))
}

/// Nanoseconds of this thread's processor time per operation of `work`, which does `operations` of
/// them: other work on the machine shows only through its use of the caches.
fn time(operations: usize, work: impl FnOnce()) -> f64 {
    let start = processor_time();
    work();
    let elapsed = processor_time().saturating_sub(start);
    let operations = u32::try_from(operations).expect("sizes fit 32 bits");
    Duration::as_secs_f64(&elapsed) * 1e9 / f64::from(operations)
}

fn processor_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime)
        .try_into()
        .expect("processor time is not negative")
}
