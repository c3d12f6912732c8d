//! What an entry does beside its commands, and which payloads are refused.

use super::*;
use crate::state::{ChainRecord, MembershipRecord};

fn apply_error(replica: &mut Replica, index: u64, payload: &Bytes) -> ApplyError {
    let view = replica.keyspace.view();
    let mut batch = IndexedBatch::new();
    replica
        .applier
        .clone()
        .apply(position(index), payload, &view, &mut batch)
        .unwrap_err()
}

#[test]
fn blank_moves_applied_position_and_chain_hash_and_nothing_else() {
    let mut replica = Replica::new();
    replica.apply(&entry(50, vec![]));
    let before = replica.view().chain_hash().unwrap();
    let applied = replica.apply(&Bytes::from_static(&[BLANK_PAYLOAD]));
    assert_eq!(applied.outcome.index, LogIndex::new(1));
    assert_eq!(applied.outcome.term, Term::new(1));
    assert!(applied.outcome.sub_batches.is_empty());
    let view = replica.view();
    assert_eq!(view.applied_position().unwrap(), Some(position(1)));
    assert_eq!(view.clock().unwrap(), StampMillis::new(50));
    assert_ne!(view.chain_hash().unwrap(), before);
    let hash = replica.applier.chain_hash();
    assert_eq!(
        view.chain_record().unwrap(),
        Some(ChainRecord {
            index: LogIndex::new(1),
            hash
        })
    );
    assert_eq!(replica.dump().len(), 2);
}

#[test]
fn membership_is_kept_with_its_position() {
    let mut replica = Replica::new();
    let payload = Bytes::from_static(&[MEMBERSHIP_VERSION, 1, 2, 3]);
    replica.apply(&payload);
    replica.apply(&Bytes::from_static(&[BLANK_PAYLOAD]));
    let expected = MembershipRecord {
        position: position(0),
        payload,
    };
    assert_eq!(replica.view().membership().unwrap(), Some(expected));
}

#[test]
fn clock_never_goes_back() {
    let mut replica = Replica::new();
    for (stamp, clock) in [(5, 5), (3, 5), (5, 5), (6, 6), (0, 6)] {
        replica.apply(&entry(stamp, vec![]));
        assert_eq!(replica.view().clock().unwrap(), StampMillis::new(clock));
    }
}

#[test]
fn view_within_an_entry_has_its_position_and_time_and_the_hash_before_it() {
    let mut replica = Replica::new();
    replica.apply(&entry(1, vec![]));
    let hash = replica.applier.chain_hash();
    let applied = replica.apply(&entry(
        9,
        vec![sub_batch(id(1, 1, 1), 0, &[put(b"a", b"")])],
    ));
    let view = &applied.views[0];
    assert_eq!(view.applied().unwrap(), Some(LogIndex::new(1)));
    assert_eq!(view.clock().unwrap(), StampMillis::new(9));
    assert_eq!(
        view.chain_record().unwrap(),
        Some(ChainRecord {
            index: LogIndex::new(0),
            hash
        })
    );
}

#[test]
fn entry_that_is_not_the_next_one_is_refused() {
    let mut replica = Replica::new();
    let payload = entry(1, vec![]);
    assert!(matches!(
        apply_error(&mut replica, 1, &payload),
        ApplyError::OutOfOrder { .. }
    ));
    replica.apply(&payload);
    for index in [0, 2] {
        let error = apply_error(&mut replica, index, &payload);
        assert!(
            matches!(error, ApplyError::OutOfOrder { .. }),
            "{index}: {error}"
        );
    }
}

#[test]
fn payload_that_is_corrupt_or_newer_is_refused() {
    let mut replica = Replica::new();
    let whole = entry(1, vec![]);
    let payloads: [&[u8]; 5] = [
        &[],
        &[0],
        &[2],
        &[BLANK_PAYLOAD, 0],
        &whole[..whole.len() - 1],
    ];
    for payload in payloads {
        let error = apply_error(&mut replica, 0, &Bytes::copy_from_slice(payload));
        assert!(
            matches!(error, ApplyError::Payload { .. }),
            "{payload:?}: {error}"
        );
    }
}

#[test]
fn index_without_revisions_is_refused() {
    let mut replica = Replica::new();
    let first = AppliedRecord {
        position: position((1 << 48) - 2),
        clock: StampMillis::new(0),
    };
    replica.applier.applied = Some(first);
    replica.apply(&entry(1, vec![]));
    let error = apply_error(&mut replica, 1 << 48, &entry(1, vec![]));
    assert!(
        matches!(error, ApplyError::RevisionsExhausted { .. }),
        "{error}"
    );
}
