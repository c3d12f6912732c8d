//! The bytes of a value reach the reader unchanged.

use bytes::Bytes;
use kelp_client::Revision;

use super::*;

fn record(value: &'static [u8]) -> Record {
    Record {
        value: Bytes::from_static(value),
        revision: Revision::new(65_536),
        token: None,
    }
}

#[test]
fn table_adds_one_line_feed_and_raw_adds_nothing() {
    let record = record(b"\xff\n\x00");
    assert_eq!(printed(b"k", &record, OutputFormat::Table), b"\xff\n\x00\n");
    assert_eq!(printed(b"k", &record, OutputFormat::Raw), b"\xff\n\x00");
}

#[test]
fn json_holds_bytes_that_are_not_utf8_as_base64() {
    let line = printed(b"k", &record(b"\xff"), OutputFormat::Json);
    let parsed: serde_json::Value = serde_json::from_slice(&line).unwrap();
    assert_eq!(parsed["key"], "k");
    assert_eq!(parsed["value"]["b64"], "/w==");
    assert_eq!(parsed["revision"], 65_536);
}

#[test]
fn an_absent_key_is_named_in_one_line() {
    assert_eq!(absent(b"a\nb").message, "no key 'a\\nb'");
    assert_eq!(absent(b"a").exit.code(), 1);
}
