use std::collections::BTreeMap;

use bytes::Bytes;

use super::{Effect, Ledger, Outcome};

const KEY: Bytes = Bytes::from_static(b"key");

fn value(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

/// Records the writes (`None` deletes) and asserts which of the candidates may be found.
fn check(writes: &[(Option<&'static str>, Outcome)], candidates: &[(Option<&'static str>, bool)]) {
    let mut ledger = Ledger::new();
    for (written, outcome) in writes {
        let effect = written.map_or(Effect::Delete, |text| Effect::Put(value(text)));
        ledger.record(&KEY, &effect, *outcome);
    }
    for (found, possible) in candidates {
        let verdict = ledger.check(&KEY, found.map(value).as_ref());
        assert_eq!(verdict.is_ok(), *possible, "{writes:?}: found {found:?}");
    }
}

#[test]
fn last_acknowledged_write_is_found_and_no_earlier_one() {
    let writes = [
        (Some("a"), Outcome::Acknowledged),
        (Some("b"), Outcome::Acknowledged),
    ];
    check(
        &writes,
        &[(Some("b"), true), (Some("a"), false), (None, false)],
    );
}

#[test]
fn acknowledged_delete_does_not_come_back() {
    let writes = [
        (Some("a"), Outcome::Acknowledged),
        (None, Outcome::Acknowledged),
    ];
    check(&writes, &[(None, true), (Some("a"), false)]);
}

#[test]
fn unknown_write_may_be_found_also_after_a_later_acknowledged_one() {
    let writes = [
        (Some("a"), Outcome::Unknown),
        (Some("b"), Outcome::Acknowledged),
    ];
    check(
        &writes,
        &[(Some("a"), true), (Some("b"), true), (None, false)],
    );
}

#[test]
fn refused_write_is_never_found() {
    let writes = [
        (Some("a"), Outcome::Acknowledged),
        (Some("b"), Outcome::NotExecuted),
    ];
    check(&writes, &[(Some("a"), true), (Some("b"), false)]);
}

#[test]
fn whole_state_is_judged_in_both_directions() {
    let mut ledger = Ledger::new();
    ledger.record(&KEY, &Effect::Put(value("a")), Outcome::Acknowledged);
    assert_eq!(ledger.check_all(&BTreeMap::from([(KEY, value("a"))])), []);
    let lost = ledger.check_all(&BTreeMap::new());
    assert_eq!(lost.len(), 1, "the lost write is named");
    let strange = ledger.check_all(&BTreeMap::from([
        (KEY, value("a")),
        (value("x"), value("y")),
    ]));
    assert_eq!(
        strange[0].key,
        value("x"),
        "the key that nobody wrote is named"
    );
}
