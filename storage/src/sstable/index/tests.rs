use proptest::prelude::*;

use super::*;
use crate::internal_key::{Kind, compare};
use crate::sequence_number::SequenceNumber;

fn key() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0), Just(0xFF), Just(0xFE), Just(b'a')];
    prop::collection::vec(byte, 0..5)
}

fn trailer(sequence: u64) -> Trailer {
    Trailer::new(SequenceNumber::new(sequence), Kind::Put)
}

proptest! {
    #[test]
    fn a_separator_lies_between_two_blocks(last in key(), next in key(), sequence in 2..5_u64) {
        prop_assume!(last <= next);
        let last = (last.as_slice(), trailer(sequence));
        let (user_key, found) = separator(last, Some(&next));
        let separator = (user_key.as_slice(), found);
        let first_of_next = if last.0 == next {
            trailer(sequence - 1)
        } else {
            Trailer::BEFORE_ALL
        };
        prop_assert!(compare(last, separator).is_le());
        prop_assert!(compare(separator, (&next, first_of_next)).is_lt());
        prop_assert!(user_key.len() <= last.0.len().max(next.len()));
    }
}

#[test]
fn a_separator_is_short() {
    let cases: [(&str, &str, &str); 4] = [
        ("abcdef", "abxyz", "abx"),
        ("a", "abcdef", "ab"),
        ("", "abc", "a"),
        ("long", "m", "long"),
    ];
    for (last, next, expected) in cases {
        let (found, _) = separator((last.as_bytes(), trailer(1)), Some(next.as_bytes()));
        assert_eq!(found, expected.as_bytes());
    }
}
