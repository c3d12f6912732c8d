//! Each value is shown with its origin.

use std::collections::BTreeMap;

use super::*;
use crate::config::Layers;

#[test]
fn the_table_shows_value_and_origin() {
    let flags = BTreeMap::from([("dir", "/data".to_owned())]);
    let text = table(&Layers::with_flags(flags).merge());
    let line = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("dir"), "dir /data flag --dir");
    assert_eq!(line("heartbeat"), "heartbeat 100ms default");
    assert_eq!(line("certs"), "certs - not set");
}

#[test]
fn json_has_null_for_what_is_not_set() {
    let text = json_text(&Layers::default().merge());
    let parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(parsed["options"][0]["name"], "dir");
    assert!(parsed["options"][0]["value"].is_null());
}
