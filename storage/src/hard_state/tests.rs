use bytes::Bytes;
use proptest::prelude::*;

use super::*;

fn slot() -> impl Strategy<Value = Slot> {
    let vote = (
        any::<u32>(),
        1..u64::MAX,
        prop::collection::vec(any::<u8>(), 0..=64),
    );
    let votes = prop::collection::vec(vote, 0..=VOTES_MAX);
    (
        0..=slot::COUNT_MAX,
        0..=slot::COUNT_MAX,
        any::<[u8; 16]>(),
        any::<u64>(),
        any::<u64>(),
        votes,
    )
        .prop_map(|(sequence, boot, database, wal_file, wal_synced, votes)| {
            let votes = votes.into_iter().map(|(log, sequence, vote)| {
                (
                    LogNumber::new(log),
                    StoredVote {
                        sequence,
                        vote: Bytes::from(vote),
                    },
                )
            });
            Slot {
                sequence,
                boot,
                database: DatabaseId::from_bytes(database),
                wal_file: FileNumber::new(wal_file),
                wal_synced,
                votes: votes.collect(),
            }
        })
}

proptest! {
    #[test]
    fn slots_survive_encoding(slot in slot()) {
        let bytes = slot.encode();
        prop_assert_eq!(bytes.len(), SLOT_BYTES);
        prop_assert_eq!(Slot::decode(&bytes), Ok(slot));
    }

    #[test]
    fn arbitrary_slots_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Slot::decode(&bytes);
        // With a checksum that holds, the fields are reached.
        let mut whole = b"KHRD\x01\x00".to_vec();
        whole.extend_from_slice(&bytes);
        whole.resize(SLOT_BYTES - 4, 7);
        let check = crc32fast::hash(&whole);
        whole.extend_from_slice(&check.to_le_bytes());
        let _ = Slot::decode(&whole);
    }
}

#[test]
fn a_count_without_room_for_more_is_damage() {
    let empty = Slot::empty(DatabaseId::from_bytes([7; 16]));
    let (sequence, boot) = (slot::COUNT_MAX + 1, slot::COUNT_MAX + 1);
    for slot in [
        Slot {
            sequence,
            ..empty.clone()
        },
        Slot { boot, ..empty },
    ] {
        assert_eq!(Slot::decode(&slot.encode()), Err(SlotFault::Damaged));
    }
}
