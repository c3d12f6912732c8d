//! Where the keys with a prefix end.

use super::*;

#[test]
fn a_prefix_ends_where_the_next_one_begins() {
    let check = |prefix: &[u8], expected: Option<&'static [u8]>| {
        assert_eq!(key_after_prefix(prefix), expected.map(Bytes::from_static));
    };
    check(b"a", Some(b"b"));
    check(b"a\xff\xff", Some(b"b"));
    check(b"\xff", None);
    check(b"", None);
}
