//! Gathers the counters of all parts of a database.

use super::Shared;
use crate::metrics::StorageMetrics;

/// A snapshot; parts are read one after the other, so they may differ by what happens meanwhile.
pub(super) fn collect(shared: &Shared) -> StorageMetrics {
    let mut metrics = shared.wal.counters.snapshot(shared.seams.clock.monotonic());
    metrics.wal_files = shared.wal.files.count();
    add_keyspaces(shared, &mut metrics);
    let flush = shared.flush.metrics();
    metrics.flushes = flush.flushes;
    metrics.flush_bytes = flush.bytes;
    metrics.flush_failures = flush.failures;
    metrics.stalls = flush.stalls;
    shared.compaction.counters.fill(&mut metrics);
    let catalog = shared.catalog.metrics();
    metrics.zombie_bytes = catalog.zombie_bytes;
    metrics.zombie_tables = catalog.zombie_tables;
    metrics.manifest_bytes = catalog.manifest_bytes;
    metrics.manifest_rolls = catalog.manifest_rolls;
    metrics.block_cache_bytes = shared.catalog.cache().bytes();
    shared.catalog.cache().counters().fill(&mut metrics);
    metrics
}

fn add_keyspaces(shared: &Shared, metrics: &mut StorageMetrics) {
    for keyspace in shared.keyspaces.all() {
        let sources = keyspace.sources();
        for memtable in sources.memtables() {
            metrics.memtable_bytes += memtable.bytes();
            metrics.memtable_entries += memtable.entries();
            metrics.memtables += usize::from(!memtable.is_empty());
        }
        metrics.frozen_memtables += sources.frozen_count();
        for (level, table) in sources.version().tables() {
            metrics.level_tables[level] += 1;
            metrics.level_bytes[level] += table.meta().bytes;
        }
    }
}
