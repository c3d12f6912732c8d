//! The parts of a merge, each on its own.

use std::convert::Infallible;

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

use super::super::merge::{Merge, Source};
use super::super::output::Cutter;
use super::super::pick::Compaction;
use super::super::retention::{Fate, OlderTables, OutOfOrder, Retention};
use super::*;
use crate::internal_key::{Kind, Trailer, compare};

struct Listed {
    number: usize,
    versions: std::vec::IntoIter<(Vec<u8>, Trailer)>,
}

impl Source for Listed {
    type Error = Infallible;

    fn entry(&self) -> Option<(&[u8], Trailer)> {
        let first = self.versions.as_slice().first()?;
        Some((first.0.as_slice(), first.1))
    }

    fn value(&self) -> Option<Bytes> {
        None
    }

    fn advance(&mut self) -> Result<(), Infallible> {
        self.versions.next();
        Ok(())
    }
}

fn put(sequence: u64) -> Trailer {
    Trailer::new(SequenceNumber::new(sequence), Kind::Put)
}

fn delete(sequence: u64) -> Trailer {
    Trailer::new(SequenceNumber::new(sequence), Kind::Delete)
}

proptest! {
    #[test]
    fn a_merge_gives_every_version_once_in_order_and_of_equal_ones_the_newer_source_first(
        sources in vec(btree_set((vec(0..3_u8, 0..3), 0..6_u64), 0..12), 0..7),
    ) {
        let mut expected = Vec::new();
        let mut listed = Vec::new();
        for (number, source) in sources.into_iter().enumerate() {
            let versions = source.into_iter().map(|(key, sequence)| (key, put(sequence)));
            let mut versions: Vec<_> = versions.collect();
            versions.sort_by(|left, right| compare((&left.0, left.1), (&right.0, right.1)));
            expected.extend(versions.iter().cloned().map(|version| (version, number)));
            listed.push(Listed { number, versions: versions.into_iter() });
        }
        expected.sort_by(|(left, one), (right, other)| {
            compare((&left.0, left.1), (&right.0, right.1)).then(one.cmp(other))
        });
        let mut merge = Merge::new(listed);
        let mut found = Vec::new();
        while let Some(source) = merge.head() {
            let (key, trailer) = source.entry().unwrap();
            found.push(((key.to_vec(), trailer), source.number));
            merge.advance().unwrap();
        }
        merge.advance().unwrap();
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn an_older_table_of_l0_outside_the_merge_keeps_tombstones_and_numbers() {
    let mut plan = Plan::default();
    plan[0] = vec![
        Arc::new(table(9, "a", "z", 1)),
        Arc::new(table(5, "b", "p", 1)),
        Arc::new(table(2, "m", "n", 1)),
    ];
    let compaction = Compaction {
        upper_level: 0,
        upper: vec![Arc::clone(&plan[0][1])],
        output_level: 6,
        lower: Vec::new(),
        grandparents: Vec::new(),
        trivial_move: false,
    };
    let mut retention = Retention::new(OlderTables::new(&levels(&plan), &compaction));
    let mut fate = |key: &str, trailer| retention.fate(key.as_bytes(), trailer).unwrap();
    assert_eq!(fate("b", delete(51)), Fate::Drop);
    assert_eq!(
        fate("c", put(52)),
        Fate::Keep(put(0)),
        "what is newer says nothing"
    );
    assert_eq!(fate("m", delete(53)), Fate::Keep(delete(53)));
    assert_eq!(fate("n", put(54)), Fate::Keep(put(54)));
    assert_eq!(fate("n", put(20)), Fate::Drop, "an older version");
    assert_eq!(fate("o", delete(55)), Fate::Drop);
    assert_eq!(retention.fate(b"n", put(1)), Err(OutOfOrder));
}

#[test]
fn a_table_ends_when_it_is_full_or_meets_too_much() {
    let grandparents = [
        table(1, "b", "c", 60),
        table(2, "d", "e", 60),
        table(3, "f", "g", 60),
    ];
    let grandparents: Vec<_> = grandparents.into_iter().map(Arc::new).collect();
    let mut cutter = Cutter::new(10, &grandparents);
    let mut cut = |key: &str, bytes| cutter.must_cut(key.as_bytes(), bytes);
    assert!(!cut("a", 0));
    assert!(!cut("b", 9));
    assert!(cut("c", 10), "full");
    assert!(!cut("d", 1), "one table of 60 is passed");
    assert!(cut("f", 2), "two tables are more than 100");
    assert!(!cut("x", 3));
    assert!(!cut("y", 0), "nothing ends before it began");
}

#[test]
fn tables_that_are_passed_before_the_first_key_do_not_count() {
    let grandparents: Vec<_> = (1..=5)
        .map(|number| {
            let key = number.to_string();
            Arc::new(table(number, &key, &key, 90))
        })
        .collect();
    let mut cutter = Cutter::new(10, &grandparents);
    assert!(!cutter.must_cut(b"4", 0));
    assert!(!cutter.must_cut(b"5", 1));
    assert!(cutter.must_cut(b"6", 2));
}
