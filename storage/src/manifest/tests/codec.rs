//! Edits survive encoding; arbitrary bytes never panic.

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::{current, edit};
use super::*;
use crate::version::LEVELS;

fn any_id() -> impl Strategy<Value = KeyspaceId> {
    (1..u32::MAX).prop_map(id)
}

fn any_number() -> impl Strategy<Value = FileNumber> {
    (1..=1_u64 << 62).prop_map(FileNumber::new)
}

fn any_sequence() -> impl Strategy<Value = SequenceNumber> {
    (0..=SequenceNumber::MAX.get()).prop_map(SequenceNumber::new)
}

fn any_table() -> impl Strategy<Value = TableMeta> {
    let keys = (vec(any::<u8>(), 0..40), vec(any::<u8>(), 0..40));
    let numbers = (any_number(), any_number(), any::<(u64, u64)>());
    let counts = (1..u64::MAX, any::<u64>(), 0..1_u64 << 62);
    let sequences = (any_sequence(), any_sequence());
    (keys, numbers, counts, sequences, any::<[u8; 16]>()).prop_map(
        |(
            keys,
            (number, born, (bytes, hash)),
            (entries, tombstones, epoch),
            sequences,
            database,
        )| {
            TableMeta {
                number,
                bytes,
                hash,
                birth: Birth {
                    database: DatabaseId::from_bytes(database),
                    number: born,
                },
                smallest: keys.0.clone().min(keys.1.clone()).into(),
                largest: keys.0.max(keys.1).into(),
                sequence_min: sequences.0.min(sequences.1),
                sequence_max: sequences.0.max(sequences.1),
                entries,
                tombstones: tombstones % entries,
                epoch,
            }
        },
    )
}

fn any_record() -> impl Strategy<Value = Record> {
    let options = (1..=262_144_u32, any::<bool>(), 0..=20_u8);
    let options = options.prop_map(|(block_bytes, compressed, bits)| KeyspaceOptions {
        block_bytes,
        compressed,
        filter_bits_per_key: bits,
    });
    prop_oneof![
        any_number().prop_map(Record::NextNumber),
        any_id().prop_map(Record::NextKeyspace),
        any_id().prop_map(Record::DropKeyspace),
        (any_id(), any_sequence()).prop_map(|(id, last)| Record::LastSequence(id, last)),
        (any_id(), ".{0,20}", options).prop_map(|(id, name, options)| Record::AddKeyspace {
            id,
            name: name.into(),
            options
        }),
        (any_id(), 0..LEVELS, any_number()).prop_map(|(id, level, number)| Record::RemoveTable {
            id,
            level,
            number
        }),
        (any_id(), 0..LEVELS, any_table()).prop_map(|(id, level, table)| Record::AddTable {
            id,
            level,
            table
        }),
    ]
}

proptest! {
    #[test]
    fn edits_survive_encoding(edit in vec(any_record(), 0..6)) {
        prop_assert_eq!(edit::decode(&edit::encode(&edit)), Ok(edit));
    }

    #[test]
    fn arbitrary_bytes_are_an_edit_or_a_fault(bytes in vec(any::<u8>(), 0..200)) {
        if let Ok(edit) = edit::decode(&bytes) {
            prop_assert_eq!(edit::decode(&edit::encode(&edit)), Ok(edit));
        }
    }

    #[test]
    fn a_changed_edit_never_panics(
        edit in vec(any_record(), 1..4),
        place: proptest::sample::Index,
        byte: u8,
    ) {
        let mut bytes = edit::encode(&edit);
        let place = place.index(bytes.len());
        bytes[place] = byte;
        let _ = edit::decode(&bytes);
        let _ = edit::decode(&bytes[..place]);
    }

    #[test]
    fn arbitrary_bytes_name_no_manifest(bytes in vec(any::<u8>(), 0..64)) {
        prop_assert_eq!(current::decode(&bytes), None);
    }
}

#[test]
fn records_that_are_not_known_are_skipped_or_refuse_the_edit() {
    let mut bytes = edit::encode(&edits()[0]);
    crate::codec::push_field(&mut bytes, 128, b"later");
    assert_eq!(edit::decode(&bytes), Ok(edits()[0].clone()));
    for tag in [0, 8, 127] {
        let mut bytes = edit::encode(&edits()[0]);
        crate::codec::push_field(&mut bytes, tag, b"later");
        let fault = edit::decode(&bytes).unwrap_err();
        assert!(fault.0.contains("not known"), "{fault:?}");
    }
}

#[test]
fn the_length_of_a_record_is_bounded_by_what_is_left() {
    let mut bytes = Vec::new();
    crate::codec::push_varint(&mut bytes, 7);
    crate::codec::push_varint(&mut bytes, u64::MAX);
    bytes.extend_from_slice(b"short");
    assert!(edit::decode(&bytes).is_err());
}

#[test]
fn options_of_another_version_are_refused() {
    let bytes = KeyspaceOptions::default().encode();
    assert_eq!(
        KeyspaceOptions::decode(&bytes),
        Some(KeyspaceOptions::default())
    );
    let mut newer = bytes.clone();
    newer[0] = 1;
    assert_eq!(KeyspaceOptions::decode(&newer), None);
    let longer = [bytes.as_slice(), &[0]].concat();
    assert_eq!(KeyspaceOptions::decode(&longer), None);
    assert_eq!(KeyspaceOptions::decode(&bytes[1..]), None);
}
