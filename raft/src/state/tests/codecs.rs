//! The bytes of keys and records, and the inputs that they refuse.

use kelp_storage::{EntryTerm, LogPosition};
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::golden;

fn sample_keys() -> Vec<StateKey> {
    let key = Bytes::from_static(b"\x00user\xFF");
    let client = ClientId::new(*b"0123456789abcdef");
    let id = SubBatchId {
        node: NodeId::new(2),
        boot: Boot::new(3),
        batch: BatchNumber::new(4),
    };
    vec![
        StateKey::Meta(MetaKey::Applied),
        StateKey::Meta(MetaKey::FeatureVersion),
        StateKey::NodeDirectory { node: id.node },
        StateKey::Record {
            database: 9,
            key: key.clone(),
        },
        StateKey::Expiry {
            at: StampMillis::new(1_700_000_000_000),
            database: 9,
            key,
        },
        StateKey::NodeProgress { node: id.node },
        StateKey::SubBatchResult(id),
        StateKey::Session { client },
        StateKey::SessionReply {
            client,
            sequence: 5,
        },
        StateKey::History {
            revision: Revision::new(65_536),
        },
        StateKey::Element {
            rest: Bytes::from_static(b"rest"),
        },
    ]
}

fn sample_position() -> LogPosition {
    LogPosition {
        index: LogIndex::new(7),
        term: EntryTerm { term: 3, leader: 2 },
    }
}

/// Writes each part behind its length, so that the file shows where one ends.
fn join(parts: impl IntoIterator<Item = Bytes>) -> Vec<u8> {
    let mut joined = Vec::new();
    for part in parts {
        joined.extend_from_slice(&u32::try_from(part.len()).unwrap().to_be_bytes());
        joined.extend_from_slice(&part);
    }
    joined
}

#[test]
fn keys_have_their_golden_bytes_in_ascending_order_and_read_back() {
    let keys = sample_keys();
    let encoded: Vec<_> = keys.iter().map(StateKey::encode).collect();
    assert!(
        encoded.is_sorted(),
        "the kinds are in the order of their prefixes"
    );
    golden::check("state_keys.bin", &join(encoded.iter().cloned()));
    for (key, bytes) in keys.iter().zip(encoded) {
        assert_eq!(StateKey::decode(&bytes).as_ref(), Ok(key));
    }
}

#[test]
fn records_have_their_golden_bytes_and_read_back() {
    let record = Record {
        revision: Revision::new(65_537),
        expire_at: Some(StampMillis::new(1_700_000_000_000)),
        value: Bytes::from_static(b"value"),
    };
    let plain = Record {
        expire_at: None,
        value: Bytes::new(),
        ..record.clone()
    };
    let applied = AppliedRecord {
        position: sample_position(),
        clock: StampMillis::new(11),
    };
    let chain = ChainRecord {
        index: LogIndex::new(7),
        hash: ChainHash::new(1 << 100),
    };
    let payload = Bytes::from_static(b"\x41payload");
    let membership = MembershipRecord {
        position: sample_position(),
        payload,
    };
    let limits = Limits {
        key_bytes_max: 10,
        value_bytes_max: 20,
    };
    let base = Revision::new(1 << 40);
    let progress = NodeProgress {
        boot: Boot::new(3),
        last: BatchNumber::new(9),
        floor: BatchNumber::new(4),
    };
    let directory = DatabaseId::from_bytes(*b"fedcba9876543210");
    let encoded = [
        record.encode(),
        plain.encode(),
        applied.encode(),
        chain.encode(),
        membership.encode(),
        limits.encode(),
        encode_revision_base(base),
        progress.encode(),
        encode_directory(directory),
    ];
    golden::check("state_records.bin", &join(encoded.iter().cloned()));
    assert_eq!(Record::decode(&encoded[0]), Ok(record));
    assert_eq!(Record::decode(&encoded[1]), Ok(plain));
    assert_eq!(AppliedRecord::decode(&encoded[2]), Ok(applied));
    assert_eq!(ChainRecord::decode(&encoded[3]), Ok(chain));
    assert_eq!(MembershipRecord::decode(&encoded[4]), Ok(membership));
    assert_eq!(Limits::decode(&encoded[5]), Ok(limits));
    assert_eq!(decode_revision_base(&encoded[6]), Ok(base));
    assert_eq!(NodeProgress::decode(&encoded[7]), Ok(progress));
    assert_eq!(decode_directory(&encoded[8]), Ok(directory));
}

#[test]
fn plain_record_of_the_hot_path_equals_the_encoded_record() {
    let record = Record {
        revision: Revision::new(u64::MAX),
        expire_at: None,
        value: Bytes::from_static(b"v"),
    };
    let mut out = bytes::BytesMut::new();
    put_record_head(record.revision, None, &mut out);
    out.extend_from_slice(&record.value);
    assert_eq!(out.freeze(), record.encode());
}

#[test]
fn record_of_an_unknown_kind_or_with_unknown_flags_is_refused() {
    let record = Record {
        revision: Revision::new(1),
        expire_at: None,
        value: Bytes::new(),
    };
    for position in [0, 1] {
        let mut bytes = record.encode().to_vec();
        bytes[position] = 9;
        assert!(Record::decode(&Bytes::from(bytes)).is_err());
    }
}

#[test]
fn progress_whose_floor_is_outside_its_batches_is_refused() {
    let progress = |last, floor| NodeProgress {
        boot: Boot::new(1),
        last: BatchNumber::new(last),
        floor: BatchNumber::new(floor),
    };
    for wrong in [progress(3, 0), progress(3, 4), progress(0, 0)] {
        assert!(NodeProgress::decode(&wrong.encode()).is_err());
    }
}

proptest! {
    #[test]
    fn record_keys_order_as_database_and_user_key(
        keys in vec((any::<u8>(), vec(any::<u8>(), 0..4)), 2)
    ) {
        let encoded: Vec<_> = keys
            .iter()
            .map(|(database, key)| StateKey::Record {
                database: *database,
                key: Bytes::copy_from_slice(key),
            }.encode())
            .collect();
        prop_assert_eq!(encoded[0].cmp(&encoded[1]), keys[0].cmp(&keys[1]));
    }

    #[test]
    fn arbitrary_key_that_is_read_is_the_key_that_is_written(
        bytes in vec(prop_oneof![0..6_u8, any::<u8>()], 0..24)
    ) {
        if let Ok(key) = StateKey::decode(&bytes) {
            prop_assert_eq!(key.encode(), bytes);
        }
    }

    #[test]
    fn arbitrary_bytes_are_no_record_that_panics(
        bytes in vec(prop_oneof![0..3_u8, any::<u8>()], 0..60)
    ) {
        let bytes = Bytes::from(bytes);
        let _ = Record::decode(&bytes);
        let _ = AppliedRecord::decode(&bytes);
        let _ = ChainRecord::decode(&bytes);
        let _ = MembershipRecord::decode(&bytes);
        let _ = Limits::decode(&bytes);
        let _ = decode_revision_base(&bytes);
        let _ = NodeProgress::decode(&bytes);
        let _ = decode_directory(&bytes);
    }
}
