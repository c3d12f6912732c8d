use kelp_seams::{ManualClock, SteppedExecutor};
use openraft::SnapshotMeta;

use super::*;
use crate::testing_state::keyspace;
use crate::type_config::{LeaderId, LogId, StoredMembership};

fn shipping() -> (Arc<Shipping>, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new());
    let executor = Arc::new(SteppedExecutor::new(clock.clone()));
    (Arc::new(Shipping::new(executor, clock.clone())), clock)
}

fn meta(index: u64) -> Meta {
    let leader = LeaderId {
        term: 1,
        node_id: 1,
    };
    SnapshotMeta {
        last_log_id: Some(LogId::new(leader, index)),
        last_membership: StoredMembership::default(),
    }
}

fn preferred(shipping: &Shipping) -> Option<u64> {
    let meta = shipping.preferred()?.meta;
    meta.last_log_id.map(|last| last.index)
}

#[test]
fn a_transfer_holds_the_log_while_it_runs_and_a_while_after() {
    let (shipping, clock) = shipping();
    let pinned = keyspace().pin();
    assert_eq!(shipping.holds_from(), None);
    let older = shipping.start(&meta(10), &pinned);
    let newer = shipping.start(&meta(20), &pinned);
    assert_eq!(shipping.holds_from(), Some(LogIndex::new(11)));
    older.finish();
    clock.advance(REMEMBERED / 2);
    assert_eq!(shipping.holds_from(), Some(LogIndex::new(11)));
    clock.advance(REMEMBERED / 2);
    assert_eq!(shipping.holds_from(), Some(LogIndex::new(21)));
    drop(newer);
    clock.advance(REMEMBERED);
    assert_eq!(shipping.holds_from(), None);
    assert_eq!(shipping.counters.sent.load(Ordering::Relaxed), 1);
}

#[test]
fn a_transfer_that_broke_off_is_gone_on_with_for_a_while() {
    let (shipping, clock) = shipping();
    let pinned = keyspace().pin();
    let broken = shipping.start(&meta(10), &pinned);
    assert_eq!(preferred(&shipping), Some(10));
    drop(broken);
    clock.advance(REMEMBERED / 2);
    assert_eq!(preferred(&shipping), Some(10));
    clock.advance(REMEMBERED / 2);
    assert_eq!(preferred(&shipping), None);
    shipping.start(&meta(30), &pinned).finish();
    assert_eq!(
        preferred(&shipping),
        None,
        "a receiver that has it needs no other"
    );
}

#[test]
fn a_snapshot_whose_next_entry_is_gone_is_not_gone_on_with() {
    let (shipping, _clock) = shipping();
    let pinned = keyspace().pin();
    let _running = shipping.start(&meta(10), &pinned);
    shipping.discarded(LogIndex::new(10));
    assert_eq!(preferred(&shipping), Some(10));
    shipping.discarded(LogIndex::new(11));
    assert_eq!(preferred(&shipping), None);
    let _next = shipping.start(&meta(20), &pinned);
    assert_eq!(preferred(&shipping), Some(20));
}

#[tokio::test(start_paused = true)]
async fn bytes_leave_at_the_rate_that_is_allowed() {
    let (shipping, _clock) = shipping();
    let start = Instant::now();
    let second = usize::try_from(BYTES_PER_SECOND_MAX).unwrap();
    for _ in 0..8 {
        shipping.paced(second / 4).await;
    }
    // The last piece left a quarter of a second ago.
    assert_eq!(start.elapsed().as_millis(), 1_750);
}
