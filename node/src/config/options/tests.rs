//! The table's names are unique and follow one pattern.

use std::collections::BTreeSet;

use super::*;

#[test]
fn names_are_unique_and_spelled_alike() {
    let names: BTreeSet<_> = OPTIONS.iter().map(|spec| spec.name).collect();
    assert_eq!(names.len(), OPTIONS.len());
    for name in names {
        assert!(
            name.chars()
                .all(|letter| letter.is_ascii_lowercase() || letter == '-'),
            "{name}"
        );
    }
}

#[test]
fn variable_and_key_are_derived_from_the_flag() {
    let spec = OptionSpec::find("election-min").unwrap();
    assert_eq!(spec.variable(), "KELP_ELECTION_MIN");
    assert_eq!(spec.key(), "election_min");
    assert!(OptionSpec::find("election_min").is_none());
}
