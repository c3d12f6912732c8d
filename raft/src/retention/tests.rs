use proptest::prelude::*;

use super::*;

fn at(index: impl Into<Option<u64>>) -> Option<LogIndex> {
    index.into().map(LogIndex::new)
}

/// A log of 1..=100 that is flushed through 80; its newest bytes begin at 60.
fn needs() -> LogNeeds {
    LogNeeds {
        purged: at(0),
        flushed: at(80),
        kept_from: at(60),
        held_from: None,
        holdable_from: at(20),
    }
}

#[test]
fn what_is_flushed_and_not_among_the_newest_bytes_goes() {
    assert_eq!(purge_through(needs()), at(59));
    let kept_from = at(95);
    assert_eq!(
        purge_through(LogNeeds {
            kept_from,
            ..needs()
        }),
        at(80)
    );
    let purged = at(59);
    assert_eq!(purge_through(LogNeeds { purged, ..needs() }), None);
}

#[test]
fn nothing_goes_before_the_first_flush() {
    let flushed = None;
    assert_eq!(purge_through(LogNeeds { flushed, ..needs() }), None);
}

#[test]
fn a_transfer_holds_the_log_up_to_a_limit() {
    let held_from = at(41);
    assert_eq!(
        purge_through(LogNeeds {
            held_from,
            ..needs()
        }),
        at(40)
    );
    let held_from = at(3);
    assert_eq!(
        purge_through(LogNeeds {
            held_from,
            ..needs()
        }),
        at(19)
    );
    let held_from = at(70);
    assert_eq!(
        purge_through(LogNeeds {
            held_from,
            ..needs()
        }),
        at(59)
    );
}

#[test]
fn the_first_entry_may_be_the_first_to_stay() {
    let kept_from = at(0);
    let purged = None;
    assert_eq!(
        purge_through(LogNeeds {
            purged,
            kept_from,
            ..needs()
        }),
        None
    );
}

proptest! {
    #[test]
    fn nothing_that_somebody_needs_ever_goes(
        purged in prop::option::of(0..100_u64),
        flushed in prop::option::of(0..100_u64),
        kept in prop::option::of(0..100_u64),
        held in prop::option::of(0..100_u64),
        holdable in prop::option::of(0..100_u64),
    ) {
        let needs = LogNeeds {
            purged: at(purged),
            flushed: at(flushed),
            kept_from: at(kept),
            held_from: at(held),
            holdable_from: at(holdable),
        };
        if let Some(through) = purge_through(needs).map(LogIndex::get) {
            prop_assert!(Some(through) > purged);
            prop_assert!(Some(through) <= flushed);
            prop_assert!(kept.is_none_or(|kept| through < kept));
            prop_assert!(held.is_none_or(|held| through < held.max(holdable.unwrap_or(0))));
        }
    }
}
