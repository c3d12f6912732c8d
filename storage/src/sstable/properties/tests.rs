use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn properties() -> Properties {
    Properties {
        entry_count: 9,
        tombstone_count: 2,
        user_key_count: 5,
        raw_key_bytes: 300,
        raw_value_bytes: 4_000,
        data_block_count: 1,
        sequence_min: SequenceNumber::new(3),
        sequence_max: SequenceNumber::MAX,
        smallest: Bytes::new(),
        largest: Bytes::from_static(b"\xFF"),
        birth: Birth {
            database: DatabaseId::from_bytes([7; 16]),
            number: FileNumber::new(12),
        },
    }
}

#[test]
fn properties_give_their_fields_back() {
    assert_eq!(Properties::decode(&properties().encode()), Ok(properties()));
}

#[test]
fn unknown_fields_are_skipped() {
    let mut bytes = properties().encode();
    bytes.extend_from_slice(&[13, 3, 1, 2, 3, 200, 1, 0]);
    assert_eq!(Properties::decode(&bytes), Ok(properties()));
    bytes.push(14);
    assert!(Properties::decode(&bytes).is_err());
}

#[test]
fn unknown_required_features_are_refused() {
    for bit in 0..32 {
        let mut bytes = properties().encode();
        bytes[bit / 8] |= 1 << (bit % 8);
        assert!(Properties::decode(&bytes).is_err());
    }
}

#[test]
fn a_missing_field_is_a_fault() {
    let bytes = properties().encode();
    for length in 0..bytes.len() {
        assert!(Properties::decode(&bytes[..length]).is_err(), "{length}");
    }
}

#[test]
fn counts_that_cannot_be_are_a_fault() {
    let wrong = [
        Properties {
            tombstone_count: 10,
            ..properties()
        },
        Properties {
            entry_count: 0,
            tombstone_count: 0,
            user_key_count: 0,
            ..properties()
        },
        Properties {
            smallest: Bytes::from_static(b"\xFF\0"),
            ..properties()
        },
    ];
    for properties in wrong {
        assert!(Properties::decode(&properties.encode()).is_err());
    }
}

proptest! {
    #[test]
    fn properties_of_arbitrary_bytes_never_panic(
        bytes in vec(any::<u8>(), 0..100),
        changes in vec((0..200_usize, any::<u8>()), 1..8),
    ) {
        let _ = Properties::decode(&bytes);
        let mut changed = properties().encode();
        for (at, byte) in changes {
            let at = at % changed.len();
            changed[at] = byte;
        }
        let _ = Properties::decode(&changed);
    }
}
