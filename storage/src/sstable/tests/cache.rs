//! What memory answers, and what stays in it.

use super::*;

fn table(versions: &[Version], cache_bytes: u64) -> (Arc<SstableReader>, Arc<BlockCache>) {
    let disk = disk();
    let summary = write(&disk, 3, small_options(), versions).unwrap();
    let cache = Arc::new(BlockCache::new(cache_bytes));
    let reader = SstableReader::open(&disk, directory(), (&summary).into(), cache.clone());
    (Arc::new(reader.unwrap()), cache)
}

#[test]
fn a_block_that_was_read_answers_from_memory() {
    let (reader, _) = table(&small(), 1 << 20);
    let (key, now) = (b"key \x01", SequenceNumber::MAX);
    assert_eq!(reader.get_cached(key, now), CachedLookup::NeedsDisk);
    let found = reader.get(key, now).unwrap().unwrap();
    assert_eq!(reader.get_cached(key, now), CachedLookup::Hit(found));
    let absent = reader.get_cached(b"key \x01", SequenceNumber::new(1));
    assert_eq!(absent, CachedLookup::Absent);
}

#[test]
fn keys_outside_of_the_table_need_no_disk() {
    let (reader, _) = table(&small()[1..], 1 << 20);
    for key in [b"".as_slice(), b"key", b"key \x1E", b"z"] {
        let found = reader.get_cached(key, SequenceNumber::MAX);
        assert_eq!(found, CachedLookup::Absent);
    }
}

#[test]
fn the_filter_answers_for_most_absent_keys() {
    let (reader, _) = table(&small(), 1 << 20);
    let needs_disk = (0..1_000_u32)
        .map(|number| [b"key \0".as_slice(), &number.to_be_bytes()].concat())
        .filter(|key| reader.get_cached(key, SequenceNumber::MAX) != CachedLookup::Absent)
        .count();
    assert!(needs_disk < 50, "{needs_disk} of 1,000 passed the filter");
}

#[test]
fn a_cache_of_no_bytes_keeps_nothing() {
    let (reader, cache) = table(&small(), 0);
    let key = b"key \x01";
    assert!(reader.get(key, SequenceNumber::MAX).unwrap().is_some());
    assert_eq!(cache.bytes(), 0);
    let found = reader.get_cached(key, SequenceNumber::MAX);
    assert_eq!(found, CachedLookup::NeedsDisk);
}

#[test]
fn the_cache_stays_within_its_bytes() {
    let versions: Vec<Version> = (0..4_000_u32)
        .map(|number| (number.to_be_bytes().to_vec(), 1, Some(vec![7; 150])))
        .collect();
    let (reader, cache) = table(&versions, 100_000);
    for (key, ..) in &versions {
        assert!(reader.get(key, SequenceNumber::MAX).unwrap().is_some());
        assert!(cache.bytes() <= 100_000);
    }
    assert!(cache.bytes() > 50_000);
}

#[test]
fn reading_a_table_once_leaves_the_cache_alone() {
    let (reader, cache) = table(&small(), 1 << 20);
    assert_eq!(all(&reader, 100).unwrap(), small());
    assert_eq!(cache.bytes(), 0);
}

#[test]
fn tables_with_the_same_offsets_do_not_share_blocks() {
    let disk = disk();
    let cache = Arc::new(BlockCache::new(1 << 20));
    let readers = [3, 4].map(|number| {
        let value = number.to_string().into_bytes();
        let versions = [(b"key".to_vec(), number, Some(value))];
        let summary = write(&disk, number, small_options(), &versions).unwrap();
        SstableReader::open(&disk, directory(), (&summary).into(), cache.clone()).unwrap()
    });
    for _ in 0..2 {
        for (reader, expected) in readers.iter().zip(["3", "4"]) {
            let found = reader.get(b"key", SequenceNumber::MAX).unwrap().unwrap();
            assert_eq!(found.value, expected);
        }
    }
}

#[test]
fn lookups_are_counted_by_what_they_came_to() {
    let (reader, cache) = table(&small(), 1 << 20);
    let counts = || {
        let mut metrics = StorageMetrics::default();
        cache.counters().fill(&mut metrics);
        metrics
    };
    for _ in 0..3 {
        let found = reader.get(b"key \x01", SequenceNumber::MAX).unwrap();
        assert!(found.is_some());
    }
    let read = counts();
    assert!(read.block_cache_misses > 0 && read.block_cache_hits >= 2 * read.block_cache_misses);
    assert_eq!((read.filter_useful, read.filter_false_positives), (0, 0));
    for number in 0..1_000_u32 {
        let key = [b"key \0".as_slice(), &number.to_be_bytes()].concat();
        assert_eq!(reader.get(&key, SequenceNumber::MAX).unwrap(), None);
    }
    let absent = counts();
    assert_eq!(absent.filter_useful + absent.filter_false_positives, 1_000);
    assert!(absent.filter_useful > 950);
}
