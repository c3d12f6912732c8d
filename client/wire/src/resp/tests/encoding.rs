//! Numbers and text at their edges; every kind of reply has its golden bytes in `tests/golden.rs`.

use bytes::BytesMut;

use super::*;

fn encoded(version: RespVersion, encode: impl FnOnce(&mut RespEncoder<'_>)) -> String {
    let mut out = BytesMut::new();
    encode(&mut RespEncoder::new(&mut out, version));
    String::from_utf8(out.to_vec()).unwrap()
}

#[test]
fn numbers_are_written_in_full() {
    for number in [0, 1, -1, 9, 10, i64::MAX, i64::MIN] {
        let text = encoded(RespVersion::V2, |out| out.integer(number));
        assert_eq!(text, format!(":{number}\r\n"));
    }
}

#[test]
fn line_ends_inside_of_a_line_cannot_forge_a_reply() {
    let text = encoded(RespVersion::V3, |out| out.error("ERR no\r\n+OK\n"));
    assert_eq!(text, "-ERR no  +OK \r\n");
}

#[test]
fn versions_have_their_numbers() {
    for version in [RespVersion::V2, RespVersion::V3] {
        assert_eq!(RespVersion::from_number(version.number()), Some(version));
    }
    assert_eq!(RespVersion::from_number(4), None);
    assert_eq!(RespVersion::default(), RespVersion::V2);
}
