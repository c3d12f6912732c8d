//! The report is read by other programs and by other versions.

use super::*;

const GOLDEN: &str = r#"{"cluster_id":"00112233445566778899aabbccddeeff","node":1,"role":"leader","term":3,"leader":1,"leader_contact_ms":40,"last_log":12,"committed":12,"applied":11,"chain_hash":"000102030405060708090a0b0c0d0e0f","stopping":false,"members":[{"id":1,"name":"n1","voter":true,"client":"127.0.0.1:4800","peer":"127.0.0.1:4801","http":"127.0.0.1:4802"}],"heartbeats":[{"peer":2,"state":"arriving","age_ms":40,"round_trip_us":180,"lost_permille":10,"lost_there_permille":0,"clock_offset_ms":-1,"role":"follower","term":3,"committed":12,"applied":10,"sync_age_ms":7,"sync_p99_us":2048,"disk_free_bytes":1000000,"memory_bytes":50000,"version":"0.1.0"}]}"#;

#[test]
fn the_report_is_the_golden_one_and_survives() {
    let report = StatusReport::decode(GOLDEN.as_bytes()).unwrap();
    assert_eq!(String::from_utf8(report.encode()).unwrap(), GOLDEN);
}

#[test]
fn fields_of_newer_nodes_are_ignored() {
    let newer = GOLDEN.replacen("{\"cluster_id\"", "{\"zone\":\"b\",\"cluster_id\"", 1);
    assert!(StatusReport::decode(newer.as_bytes()).is_ok());
}

#[test]
fn a_node_that_sends_no_heartbeats_is_understood() {
    let (before, _) = GOLDEN.split_once(",\"heartbeats\"").unwrap();
    let report = StatusReport::decode(format!("{before}}}").as_bytes()).unwrap();
    assert_eq!(report.heartbeats, []);
}
