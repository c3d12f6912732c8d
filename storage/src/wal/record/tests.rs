use proptest::prelude::*;

use super::*;

fn position() -> impl Strategy<Value = LogPosition> {
    (0..u64::MAX, any::<u64>(), any::<u64>()).prop_map(|(index, term, leader)| LogPosition {
        index: LogIndex::new(index),
        term: EntryTerm { term, leader },
    })
}

fn vote() -> impl Strategy<Value = StoredVote> {
    (
        1..u64::MAX,
        prop::collection::vec(any::<u8>(), 0..=VOTE_BYTES_MAX),
    )
        .prop_map(|(sequence, vote)| StoredVote {
            sequence,
            vote: vote.into(),
        })
}

fn head() -> impl Strategy<Value = Head> {
    let entries = prop::option::of((position(), position())).prop_map(|entries| {
        entries.map(|(one, other)| {
            if one.index <= other.index {
                (one, other)
            } else {
                (other, one)
            }
        })
    });
    let optional = || prop::option::of(position());
    (prop::option::of(vote()), optional(), optional(), entries).prop_map(
        |(vote, committed, purged, entries)| Head {
            vote,
            committed,
            purged,
            entries,
        },
    )
}

fn record() -> impl Strategy<Value = Record<'static>> {
    prop_oneof![
        position().prop_map(|position| Record::Append {
            position,
            payload: b"payload"
        }),
        any::<u64>().prop_map(|from| Record::TruncateSuffix {
            from: LogIndex::new(from)
        }),
        position().prop_map(|through| Record::DiscardPrefix { through }),
        vote().prop_map(Record::PutVote),
        position().prop_map(Record::PutCommitted),
        head().prop_map(Record::Head),
    ]
}

proptest! {
    #[test]
    fn records_survive_encoding(log: u32, record in record()) {
        let log = LogNumber::new(log);
        let mut bytes = record.encode(log).as_slice().to_vec();
        if let Record::Append { payload, .. } = &record {
            bytes.extend_from_slice(payload);
        }
        prop_assert_eq!(Record::decode(&bytes), Some((log, record)));
    }

    #[test]
    fn arbitrary_bytes_never_panic(kind in 0..8_u8, bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Record::decode(&bytes);
        let mut typed = vec![kind, 0, 0, 0];
        typed.extend_from_slice(&bytes);
        let _ = Record::decode(&typed);
    }
}
