//! Measures the write-ahead log: appends per second with a number of them in flight.
//!
//! `cargo run --release -p kelp-storage --example wal_bench -- DIRECTORY [SECONDS]` prints one line
//! per combination of entry size and appends in flight: entries and mebibytes per second, entries
//! per sync, and the mean duration of a sync. Before them it prints how long an open takes, and a
//! bare write and sync on the same disk.

#![expect(clippy::print_stdout, reason = "the lines are its result")]

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use kelp_seams::{Clock, OsRng, SystemClock, ThreadExecutor};
use kelp_storage::{
    Database, DatabaseOptions, EntryTerm, LogEntry, LogIndex, LogNumber, LogPosition, RealFs, Seams,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments
        .next()
        .ok_or("usage: wal_bench DIRECTORY [SECONDS]")?;
    let seconds = arguments.next().map_or(Ok(2), |text| text.parse())?;
    let directory = Path::new(&directory);
    let clock = Arc::new(SystemClock::new());
    let seams = Seams {
        vfs: Arc::new(RealFs),
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
        rng: Arc::new(OsRng::open()?),
        executor: Arc::new(ThreadExecutor::new(clock)),
    };
    reopen(&directory.join("reopen"), &seams)?;
    println!(
        "bare write and sync of 4 KiB: {:?}",
        bare_sync(directory, &seams)?
    );
    for bytes in [128, 1024, 64 << 10, 1 << 20] {
        for in_flight in [1, 16, 256] {
            let one = directory.join(format!("{bytes}-{in_flight}"));
            run(&one, &seams, bytes, in_flight, Duration::from_secs(seconds))?;
        }
    }
    Ok(())
}

/// Times the replay of a log of many small groups.
fn reopen(directory: &Path, seams: &Seams) -> Result<(), Box<dyn std::error::Error>> {
    const ENTRIES: u64 = 200_000;
    const BYTES: usize = 1024;
    let open = || Database::open(directory, DatabaseOptions::default(), seams.clone());
    let database = open()?;
    let log = database.log(LogNumber::new(0))?;
    let payload = bytes::Bytes::from(vec![42; BYTES]);
    let term = EntryTerm { term: 1, leader: 1 };
    for index in 0..ENTRIES {
        let entry = LogEntry {
            index: LogIndex::new(index),
            term,
            payload: payload.clone(),
        };
        log.append(vec![entry], Box::new(|_| ()))?;
    }
    database.close();
    let mebibytes = database.metrics().wal_bytes / (1 << 20);
    drop((log, database));
    let start = seams.clock.monotonic();
    let database = open()?;
    let elapsed = seams.clock.monotonic().saturating_duration_since(start);
    let last = database
        .log(LogNumber::new(0))?
        .last()
        .map(|last| last.index.get());
    assert_eq!(last, Some(ENTRIES - 1), "the whole log is back");
    println!("open with {mebibytes} MiB of log, {ENTRIES} entries: {elapsed:?}");
    database.close();
    Ok(())
}

fn bare_sync(directory: &Path, seams: &Seams) -> std::io::Result<Duration> {
    const COUNT: u32 = 500;
    let vfs = &seams.vfs;
    vfs.create_dir_all(directory)?;
    let file = vfs.create(&directory.join("bare"))?;
    file.allocate(64 << 20)?;
    file.sync_all()?;
    let start = seams.clock.monotonic();
    for round in 0..COUNT {
        file.write_at(&[7; 4096], u64::from(round) * 4096)?;
        file.sync_data()?;
    }
    let elapsed = seams.clock.monotonic().saturating_duration_since(start);
    vfs.remove(&directory.join("bare"))?;
    Ok(elapsed / COUNT)
}

fn run(
    directory: &Path,
    seams: &Seams,
    bytes: usize,
    in_flight: usize,
    length: Duration,
) -> Result<(), Box<dyn std::error::Error>> {
    let database = Database::open(directory, DatabaseOptions::default(), seams.clone())?;
    let log = database.log(LogNumber::new(0))?;
    let (sender, receiver) = mpsc::channel();
    let payload = bytes::Bytes::from(vec![42; bytes]);
    let term = EntryTerm { term: 1, leader: 1 };
    let start = seams.clock.monotonic();
    let end = start + length;
    let (mut submitted, mut done) = (0_u64, 0_u64);
    while seams.clock.monotonic() < end || done < submitted {
        while submitted - done < u64::try_from(in_flight)? && seams.clock.monotonic() < end {
            let sender = sender.clone();
            let index = LogIndex::new(submitted);
            let entry = LogEntry {
                index,
                term,
                payload: payload.clone(),
            };
            log.append(
                vec![entry],
                Box::new(move |result| {
                    let _ = sender.send(result);
                }),
            )?;
            submitted += 1;
        }
        receiver.recv()??;
        done += 1;
        if done.is_multiple_of(1024) {
            log.discard_prefix(LogPosition {
                index: LogIndex::new(done - 1),
                term,
            })?;
        }
    }
    let elapsed = seams
        .clock
        .monotonic()
        .saturating_duration_since(start)
        .as_secs_f64();
    let metrics = database.metrics();
    database.close();
    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    let (count, syncs, wal_bytes) = (
        done as f64,
        metrics.wal_syncs as f64,
        metrics.wal_bytes as f64,
    );
    println!(
        "{bytes:>8} bytes, {in_flight:>3} in flight: {:>9.0} entries/s, {:>7.1} MiB/s, {:>6.1} \
         entries/sync, sync {:>9.1?}",
        count / elapsed,
        wal_bytes / elapsed / 1_048_576.0,
        count / syncs,
        metrics.wal_sync_time.div_f64(syncs),
    );
    Ok(())
}
