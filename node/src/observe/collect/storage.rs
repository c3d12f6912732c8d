//! Families of the storage engine.

use kelp_storage::StorageMetrics;

use super::super::metrics;
use super::super::requests::{EXPONENT_MAX, EXPONENT_MIN};
use super::super::samples::{Samples, count, flag, number};
use super::seconds_of_exponent;

/// All of them; `disk_free` is what the disk of the data directory has left, in bytes.
pub(super) fn samples(metrics: &StorageMetrics, disk_free: Option<u64>) -> Vec<Samples> {
    let mut samples = Vec::from(wal(metrics));
    samples.extend(memtables(metrics));
    samples.extend(compaction(metrics));
    samples.extend(tables(metrics));
    samples.extend(reads(metrics));
    samples.extend([
        Samples::optional(metrics::DISK_FREE, disk_free.map(number)),
        Samples::single(metrics::DISK_FULL, flag(metrics.disk_full)),
        Samples::single(metrics::POISONED, flag(metrics.poisoned)),
    ]);
    samples
}

fn wal(metrics: &StorageMetrics) -> [Samples; 8] {
    let running = metrics.wal_sync_running.unwrap_or_default();
    let age = metrics.wal_sync_age.map(|age| age.as_secs_f64());
    let single = Samples::single;
    [
        single(metrics::WAL_WRITTEN_BYTES, number(metrics.wal_bytes)),
        single(metrics::WAL_FRAMES, number(metrics.wal_frames)),
        single(metrics::WAL_GROUPS, number(metrics.wal_groups)),
        sync_duration(metrics),
        single(metrics::WAL_SYNC_RUNNING, running.as_secs_f64()),
        Samples::optional(metrics::WAL_SYNC_AGE, age),
        single(metrics::WAL_QUEUED_BYTES, count(metrics.wal_queued_bytes)),
        single(metrics::WAL_FILES, count(metrics.wal_files)),
    ]
}

/// The engine counts by every power of two; the short and the long ends are taken together.
fn sync_duration(metrics: &StorageMetrics) -> Samples {
    let histogram = &metrics.wal_sync_histogram;
    let first = usize::try_from(EXPONENT_MIN).unwrap_or(0);
    let last = usize::try_from(EXPONENT_MAX).unwrap_or(0);
    let sum_of = |range: &[u64]| range.iter().sum::<u64>();
    let short = histogram
        .get(..=first)
        .map_or_else(|| sum_of(histogram), sum_of);
    let beyond = histogram.get(last + 1..).map_or(0, sum_of);
    let buckets = (EXPONENT_MIN..=EXPONENT_MAX)
        .zip(first..)
        .map(|(exponent, index)| {
            let alone = histogram.get(index).copied().unwrap_or(0);
            let in_bucket = if index == first { short } else { alone };
            (seconds_of_exponent(exponent), in_bucket)
        });
    let mut samples = Samples::new(metrics::WAL_SYNC_DURATION);
    samples.add_histogram(&[], buckets, beyond, metrics.wal_sync_time.as_secs_f64());
    samples
}

fn memtables(metrics: &StorageMetrics) -> [Samples; 7] {
    let single = Samples::single;
    let frozen = metrics.frozen_memtables;
    let mut memtables = Samples::new(metrics::MEMTABLES);
    let active = metrics.memtables.saturating_sub(frozen);
    memtables.add(&["active"], count(active));
    memtables.add(&["frozen"], count(frozen));
    [
        single(metrics::MEMTABLE_BYTES, count(metrics.memtable_bytes)),
        single(metrics::MEMTABLE_ENTRIES, count(metrics.memtable_entries)),
        memtables,
        single(metrics::FLUSHES, number(metrics.flushes)),
        single(metrics::FLUSH_BYTES, number(metrics.flush_bytes)),
        single(metrics::FLUSH_FAILURES, number(metrics.flush_failures)),
        single(metrics::STALLS, number(metrics.stalls)),
    ]
}

fn compaction(metrics: &StorageMetrics) -> [Samples; 6] {
    let counts = [
        (metrics::COMPACTIONS, metrics.compactions),
        (
            metrics::COMPACTION_READ_BYTES,
            metrics.compaction_read_bytes,
        ),
        (
            metrics::COMPACTION_WRITTEN_BYTES,
            metrics.compaction_written_bytes,
        ),
        (metrics::COMPACTION_FAILURES, metrics.compaction_failures),
        (
            metrics::COMPACTION_HALTED,
            metrics.compaction_halted_keyspaces,
        ),
        (metrics::COMPACTION_DEBT, metrics.compaction_debt_bytes),
    ];
    counts.map(|(family, count)| Samples::single(family, number(count)))
}

fn tables(metrics: &StorageMetrics) -> Vec<Samples> {
    let by_level = |family, values: &[u64]| {
        let mut samples = Samples::new(family);
        for (level, value) in values.iter().enumerate() {
            samples.add(&[&level.to_string()], number(*value));
        }
        samples
    };
    vec![
        by_level(metrics::LEVEL_TABLES, &metrics.level_tables),
        by_level(metrics::LEVEL_BYTES, &metrics.level_bytes),
        Samples::single(metrics::ZOMBIE_TABLES, number(metrics.zombie_tables)),
        Samples::single(metrics::ZOMBIE_BYTES, number(metrics.zombie_bytes)),
        Samples::single(metrics::MANIFEST_BYTES, number(metrics.manifest_bytes)),
        Samples::single(metrics::MANIFEST_ROLLS, number(metrics.manifest_rolls)),
    ]
}

fn reads(metrics: &StorageMetrics) -> [Samples; 5] {
    let counts = [
        (metrics::BLOCK_CACHE_BYTES, metrics.block_cache_bytes),
        (metrics::BLOCK_CACHE_HITS, metrics.block_cache_hits),
        (metrics::BLOCK_CACHE_MISSES, metrics.block_cache_misses),
        (metrics::FILTER_USEFUL, metrics.filter_useful),
        (
            metrics::FILTER_FALSE_POSITIVES,
            metrics.filter_false_positives,
        ),
    ];
    counts.map(|(family, count)| Samples::single(family, number(count)))
}
