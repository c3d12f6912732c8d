//! The largest keys and values, one key with many versions, and what a summary says.

use super::*;
use crate::keyspace::KEY_BYTES_MAX;

#[test]
fn the_longest_keys_and_large_values_are_kept() {
    let long_key = |end: u8| [vec![0xFF; KEY_BYTES_MAX - 1], vec![end]].concat();
    let large: Vec<u8> = (0..9_u32 << 20)
        .map(|number| number.to_le_bytes()[2])
        .collect();
    let versions = vec![
        (b"a".to_vec(), 4, Some(b"small".to_vec())),
        (b"b".to_vec(), 9, Some(large.clone())),
        (b"b".to_vec(), 7, None),
        (b"b".to_vec(), 6, Some(large)),
        (long_key(0), 2, Some(Vec::new())),
        (long_key(1), 3, Some(vec![7])),
        (long_key(0xFF), 1, None),
    ];
    let disk = disk();
    let summary = write(&disk, 3, SstableOptions::default(), &versions).unwrap();
    let reader = open(&disk, &summary).unwrap();
    assert!(all(&reader, versions.len()).unwrap() == versions);
    for (key, sequence, value) in versions {
        let found = reader.get(&key, SequenceNumber::new(sequence)).unwrap();
        assert!(found.unwrap().into_change().into_value().map(Vec::from) == value);
    }
}

#[test]
fn a_user_key_lies_in_one_block_up_to_four_targets() {
    let target = SstableOptions::default().block_bytes_target;
    for (versions, blocks) in [(2, 1), (3, 1), (4, 2), (12, 4)] {
        let versions: Vec<Version> = (1..=versions)
            .rev()
            .map(|sequence| (b"key".to_vec(), sequence, Some(vec![7; target])))
            .collect();
        let disk = disk();
        let summary = write(&disk, 3, SstableOptions::default(), &versions).unwrap();
        assert_eq!(summary.properties.data_block_count, blocks);
        let reader = open(&disk, &summary).unwrap();
        for (key, sequence, _) in &versions {
            let found = reader.get(key, SequenceNumber::new(*sequence)).unwrap();
            assert_eq!(found.unwrap().sequence.get(), *sequence);
        }
        assert_eq!(reader.get(b"key", SequenceNumber::ZERO).unwrap(), None);
    }
}

#[test]
fn a_summary_says_what_the_table_holds() {
    let versions = small();
    let disk = disk();
    let summary = write(&disk, 3, small_options(), &versions).unwrap();
    let mut bytes = Vec::new();
    disk.corrupt(&path(3), |content| bytes.clone_from(content))
        .unwrap();
    assert_eq!(summary.bytes, bytes.len() as u64);
    assert_eq!(summary.hash, xxhash_rust::xxh3::xxh3_64(&bytes));
    let properties = &summary.properties;
    assert_eq!(properties.entry_count, 41);
    assert_eq!(properties.tombstone_count, 10);
    assert_eq!(properties.user_key_count, 31);
    assert_eq!(properties.raw_key_bytes, 200);
    assert_eq!(properties.sequence_min.get(), 9);
    assert_eq!(properties.sequence_max.get(), 227);
    assert_eq!(properties.smallest, "");
    assert_eq!(&*properties.largest, b"key \x1D");
    let reader = open(&disk, &summary).unwrap();
    assert_eq!(reader.properties(), properties);
    assert_eq!(reader.bytes(), summary.bytes);
    // One line of the filter, and the index.
    assert!(reader.pinned_bytes() > 64 && reader.pinned_bytes() < 1_000);
}

#[test]
fn the_length_of_a_growing_table_counts_the_open_block() {
    let options = SstableOptions {
        compression: Compression::None,
        ..SstableOptions::default()
    };
    let mut writer = SstableWriter::create(&disk(), directory(), birth(3), options).unwrap();
    let trailer = Trailer::new(SequenceNumber::ZERO, Kind::Put);
    let mut before = writer.bytes();
    for number in 0..100_u8 {
        writer.add(&[number], trailer, &[7; 90]).unwrap();
        let growth = writer.bytes() - before;
        assert!((90..150).contains(&growth), "{growth}");
        before = writer.bytes();
    }
}

#[test]
fn a_tombstone_free_version_may_have_sequence_number_zero() {
    let versions = vec![(b"key".to_vec(), 0, Some(b"value".to_vec()))];
    let disk = disk();
    let summary = write(&disk, 3, SstableOptions::default(), &versions).unwrap();
    let reader = open(&disk, &summary).unwrap();
    let found = reader.get(b"key", SequenceNumber::ZERO).unwrap().unwrap();
    assert_eq!(found.value, "value");
    assert_eq!(all(&reader, 1).unwrap(), versions);
}

#[test]
#[should_panic(expected = "versions come in ascending order")]
fn versions_out_of_order_are_refused() {
    let versions = [(b"b".to_vec(), 1, None), (b"a".to_vec(), 2, None)];
    let _ = write(&disk(), 3, SstableOptions::default(), &versions);
}

#[test]
#[should_panic(expected = "versions come in ascending order")]
fn older_versions_come_later() {
    let versions = [(b"a".to_vec(), 1, None), (b"a".to_vec(), 2, None)];
    let _ = write(&disk(), 3, SstableOptions::default(), &versions);
}
