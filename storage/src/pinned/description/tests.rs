//! Descriptions survive encoding, and one that is no version is refused.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::file_number::FileNumber;
use crate::golden;
use crate::identity::DatabaseId;
use crate::sstable::Birth;

fn table(number: u64, smallest: &str, largest: &str) -> TableMeta {
    TableMeta {
        number: FileNumber::new(number),
        bytes: 1000 + number,
        hash: 0x0123_4567_89AB_CDEF,
        birth: Birth {
            database: DatabaseId::from_bytes([7; 16]),
            number: FileNumber::new(number),
        },
        smallest: Bytes::copy_from_slice(smallest.as_bytes()),
        largest: Bytes::copy_from_slice(largest.as_bytes()),
        sequence_min: SequenceNumber::new(number),
        sequence_max: SequenceNumber::new(number + 1),
        entries: 5,
        tombstones: 1,
        epoch: number,
    }
}

fn description() -> Description {
    Description {
        options: KeyspaceOptions::default(),
        last_sequence: SequenceNumber::new(50),
        tables: vec![
            (0, table(9, "a", "z")),
            (0, table(8, "b", "y")),
            (3, table(4, "c", "d")),
            (3, table(5, "e", "e")),
            (6, table(2, "", "zz")),
        ],
    }
}

fn refused(change: impl FnOnce(&mut Description)) -> &'static str {
    let mut description = description();
    change(&mut description);
    Description::decode(&description.encode()).unwrap_err()
}

#[test]
fn the_golden_description_is_written_and_read() {
    golden::check("description.bin", &description().encode());
    let bytes = golden::load("description.bin");
    assert_eq!(Description::decode(&bytes), Ok(description()));
}

#[test]
fn every_cut_and_every_flipped_bit_is_found() {
    let bytes = description().encode();
    for place in 0..bytes.len() {
        assert!(Description::decode(&bytes[..place]).is_err());
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[place] ^= 1 << bit;
            assert!(Description::decode(&flipped).is_err());
        }
    }
}

#[test]
fn what_cannot_be_a_version_is_refused() {
    let faults = [
        refused(|described| described.tables[1].1.epoch = 9),
        refused(|described| described.tables[3].1.smallest = Bytes::from_static(b"d")),
        refused(|described| described.tables[2].1.birth.number = FileNumber::new(5)),
        refused(|described| described.tables[2].1.bytes = 63),
        refused(|described| described.tables[2].1.bytes = u64::MAX),
        refused(|described| described.last_sequence = SequenceNumber::new(9)),
        refused(|described| described.last_sequence = SequenceNumber::new((1 << 55) + 1)),
        refused(|described| described.tables[4].1.epoch = (1 << 61) + 1),
        refused(|described| described.tables[2].0 = 7),
        refused(|described| described.tables[2].1.entries = 0),
        refused(|described| described.tables[2].1.tombstones = 6),
        refused(|described| described.tables[2].1.largest = Bytes::from_static(b"b")),
        refused(|described| described.tables[2].1.smallest = Bytes::from(vec![0; 131_073])),
    ];
    assert!(faults.iter().all(|fault| !fault.is_empty()));
}

#[test]
fn a_count_of_files_is_bounded_before_any_is_read() {
    let mut bytes = description().encode();
    let options = KeyspaceOptions::default().encode().len();
    let count = 4 + 2 + 4 + options + 8;
    bytes[count..count + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    let end = bytes.len() - 4;
    let check = crc32fast::hash(&bytes[..end]);
    bytes[end..].copy_from_slice(&check.to_le_bytes());
    assert!(Description::decode(&bytes).is_err());
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..300)) {
        prop_assert!(Description::decode(&bytes).is_err());
        let mut sealed = description().encode();
        sealed.truncate(30);
        sealed.extend_from_slice(&bytes);
        let check = crc32fast::hash(&sealed);
        sealed.extend_from_slice(&check.to_le_bytes());
        let _ = Description::decode(&sealed);
    }
}
