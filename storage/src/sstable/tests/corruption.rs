//! Damaged tables: each gives an error that names the file, or what was written; never another
//! answer, never a panic.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::error::Corruption;
use crate::fuzzing;

fn table() -> (MemFs, SstableSummary) {
    let disk = disk();
    // Two levels of index, so that every kind of block is there.
    let options = SstableOptions {
        index_bytes_max: 150,
        ..small_options()
    };
    let summary = write(&disk, 3, options, &small()).unwrap();
    (disk, summary)
}

fn content(disk: &MemFs) -> Vec<u8> {
    let mut bytes = Vec::new();
    disk.corrupt(&path(3), |content| bytes.clone_from(content))
        .unwrap();
    bytes
}

fn put(disk: &MemFs, bytes: &[u8]) {
    disk.corrupt(&path(3), |content| {
        content.clear();
        content.extend_from_slice(bytes);
    })
    .unwrap();
}

#[track_caller]
fn check_names_the_place(error: &SstableError, bytes: usize) {
    match error {
        SstableError::Corruption(Corruption {
            path: named,
            offset,
            ..
        }) => {
            assert_eq!(*named, path(3));
            assert!(*offset <= bytes as u64);
        }
        SstableError::Newer { path: named, .. } => assert_eq!(*named, path(3)),
        SstableError::Io { .. } => panic!("{error} is no fault of the system"),
    }
}

/// Opens the table and reads all of it in all ways; true when nothing was amiss.
fn reads_right(disk: &MemFs, summary: &SstableSummary) -> bool {
    let bytes = content(disk).len();
    let check = |error: SstableError| check_names_the_place(&error, bytes);
    let reader = match open(disk, summary) {
        Ok(reader) => reader,
        Err(error) => {
            check(error);
            return false;
        }
    };
    let versions = small();
    let mut right = match all(&reader, versions.len()) {
        Ok(read) => {
            assert_eq!(read, versions);
            true
        }
        Err(error) => {
            check(error);
            false
        }
    };
    for (key, sequence, value) in versions {
        match reader.get(&key, SequenceNumber::new(sequence)) {
            Ok(found) => {
                let found = found.expect("a damaged table never hides a key");
                assert_eq!(found.into_change().into_value().map(Vec::from), value);
            }
            Err(error) => {
                check(error);
                right = false;
            }
        }
    }
    right
}

#[test]
fn every_changed_byte_is_found() {
    let (disk, summary) = table();
    assert!(reads_right(&disk, &summary));
    let bytes = content(&disk);
    for at in 0..bytes.len() {
        let flips = [1 << (at % 8), 0xFF];
        for flip in flips {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            put(&disk, &damaged);
            assert!(
                !reads_right(&disk, &summary),
                "byte {at} of {}",
                bytes.len()
            );
        }
    }
}

#[test]
fn every_zeroed_range_is_found() {
    let (disk, summary) = table();
    let bytes = content(&disk);
    for start in (0..bytes.len()).step_by(7) {
        let mut damaged = bytes.clone();
        let end = bytes.len().min(start + 64);
        damaged[start..end].fill(0);
        put(&disk, &damaged);
        assert!(!reads_right(&disk, &summary), "from {start}");
    }
}

#[test]
fn a_file_of_another_length_is_refused() {
    let (disk, summary) = table();
    let bytes = content(&disk);
    for length in 0..bytes.len() {
        put(&disk, &bytes[..length]);
        let error = open(&disk, &summary).err().unwrap();
        check_names_the_place(&error, bytes.len());
        // Also when the length is the one that is expected.
        let shorter = SstableSummary {
            bytes: length as u64,
            ..summary.clone()
        };
        let error = open(&disk, &shorter).err().unwrap();
        check_names_the_place(&error, bytes.len());
    }
    put(&disk, &[bytes.as_slice(), &[0]].concat());
    let error = open(&disk, &summary).err().unwrap();
    check_names_the_place(&error, bytes.len());
}

#[test]
fn a_missing_file_is_corruption() {
    let (disk, summary) = table();
    disk.remove(&path(3)).unwrap();
    let error = open(&disk, &summary).err().unwrap();
    let expected = Corruption::new(path(3), 0, "the file is missing");
    assert!(matches!(error, SstableError::Corruption(found) if found == expected));
}

#[test]
fn a_file_that_shrinks_while_it_is_open_is_corruption() {
    let (disk, summary) = table();
    let reader = open(&disk, &summary).unwrap();
    put(&disk, &content(&disk)[..20]);
    let error = reader.get(b"", SequenceNumber::MAX).err().unwrap();
    check_names_the_place(&error, content(&disk).len().max(2_000));
    assert!(error.to_string().contains("ends within a block"), "{error}");
}

#[test]
fn a_block_in_the_place_of_another_is_found() {
    let disk = disk();
    let versions: Vec<Version> = (0..20_u8)
        .map(|number| (vec![number], 1, Some(vec![7; 80])))
        .collect();
    let options = SstableOptions {
        compression: Compression::None,
        ..small_options()
    };
    let summary = write(&disk, 3, options, &versions).unwrap();
    let blocks = summary.properties.data_block_count;
    assert_eq!(blocks, 20);
    // Lengths, kind and sequence; key; value; restart point and tail; trailer of the block.
    let length = (5 + 1 + 80) + (2 + 4) + 5;
    disk.corrupt(&path(3), |bytes| {
        let (first, rest) = bytes.split_at_mut(length);
        first.swap_with_slice(&mut rest[..length]);
    })
    .unwrap();
    let reader = open(&disk, &summary).unwrap();
    for key in [[0], [1]] {
        let error = reader.get(&key, SequenceNumber::MAX).err().unwrap();
        check_names_the_place(&error, content(&disk).len());
    }
}

#[test]
fn another_table_under_the_same_name_is_refused() {
    let (disk, summary) = table();
    let mut other = summary.clone();
    other.properties.birth = birth(4);
    let error = open(&disk, &other).err().unwrap();
    assert!(error.to_string().contains("another table"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_table_of_arbitrary_bytes_never_panics(bytes in vec(any::<u8>(), 0..400)) {
        fuzzing::sstable(&bytes);
    }
}
