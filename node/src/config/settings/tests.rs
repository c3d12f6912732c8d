//! Good text becomes typed values; bad text becomes a complete list of problems.

use std::collections::BTreeMap;

use super::super::layers::Layers;
use super::*;

const BASE: [(&str, &str); 2] = [("dir", "/data"), ("certs", "/certs")];

fn settings(given: &[(&'static str, &str)]) -> Result<NodeSettings, Problems> {
    let mut flags = BTreeMap::new();
    for (name, text) in given {
        flags.insert(*name, (*text).to_owned());
    }
    NodeSettings::check(&Layers::with_flags(flags).merge())
}

fn with_base(given: &[(&'static str, &'static str)]) -> Result<NodeSettings, Problems> {
    let all: Vec<_> = BASE.iter().chain(given).copied().collect();
    settings(&all)
}

#[track_caller]
fn check_problem(given: &[(&'static str, &'static str)], expected: &str) {
    assert_eq!(with_base(given).unwrap_err().to_string(), expected);
}

#[test]
fn defaults_are_loopback_and_the_documented_ports() {
    let settings = with_base(&[]).unwrap();
    assert_eq!(settings.client.to_string(), "127.0.0.1:4800");
    assert_eq!(settings.peer.to_string(), "127.0.0.1:4801");
    assert_eq!(settings.http.to_string(), "127.0.0.1:4802");
    assert_eq!(settings.heartbeat, Duration::from_millis(100));
    assert_eq!(settings.members, []);
}

#[test]
fn all_problems_are_listed_at_once() {
    let Problems(problems) = settings(&[
        ("client", "nowhere"),
        ("heartbeat", "5"),
        ("insecure", "maybe"),
    ])
    .unwrap_err();
    let options: Vec<_> = problems.iter().map(|problem| problem.option).collect();
    assert_eq!(options, ["dir", "certs", "client", "heartbeat", "insecure"]);
}

#[test]
fn plaintext_beyond_loopback_needs_consent() {
    let open = "0.0.0.0:4800".parse().unwrap();
    let settings = with_base(&[("client", "0.0.0.0:4800")]).unwrap();
    assert!(!settings.allows_plaintext(open));
    assert!(settings.allows_plaintext(settings.http));
    let settings = with_base(&[("client", "0.0.0.0:4800"), ("insecure", "true")]).unwrap();
    assert!(settings.allows_plaintext(open));
}

#[test]
fn one_address_serves_one_purpose() {
    check_problem(
        &[("peer", "127.0.0.1:4800")],
        "peer: 127.0.0.1:4800 is also the client address",
    );
    assert!(with_base(&[("peer", "127.0.0.1:0"), ("client", "127.0.0.1:0")]).is_ok());
}

#[test]
fn join_numbers_the_members_in_order() {
    let settings = with_base(&[("join", "a:4801, b:4801")]).unwrap();
    let last = settings.members.last().unwrap();
    assert_eq!((last.id, last.name.as_str()), (2, "n2"));
    assert_eq!(last.client, "b:4800");
    assert_eq!(last.http, "b:4802");
}

#[test]
fn a_member_in_full_keeps_what_it_says() {
    let settings = with_base(&[(
        "member",
        "id=7,peer=h:1000,name=west,client=c:5; id=8,peer=i:1000",
    )])
    .unwrap();
    let expected = MemberSettings {
        id: 7,
        name: "west".to_owned(),
        peer: "h:1000".to_owned(),
        client: "c:5".to_owned(),
        http: "h:1001".to_owned(),
    };
    assert_eq!(settings.members.first(), Some(&expected));
    assert_eq!(settings.members.len(), 2);
}

#[test]
fn a_wrong_member_is_named() {
    check_problem(
        &[("member", "peer=h:1")],
        "member: 'peer=h:1' needs id=N with N from 1 to 65535",
    );
    check_problem(&[("member", "id=1")], "member: 'id=1' needs peer=HOST:PORT");
    check_problem(&[("join", "h")], "join: 'h' is not HOST:PORT");
    check_problem(
        &[("join", "a:4801,a:4801")],
        "join: address a:4801 is given twice",
    );
}

#[test]
fn timing_that_would_start_elections_is_refused() {
    check_problem(
        &[("heartbeat", "200ms")],
        "election-min: less than twice the heartbeat",
    );
    check_problem(
        &[("election-max", "250ms")],
        "election-max: not above election-min",
    );
}

#[test]
fn the_list_and_the_options_of_a_node_must_agree() {
    let settings = with_base(&[("join", "west=127.0.0.1:4801"), ("name", "west")]).unwrap();
    let own = settings.members.first().unwrap();
    assert_eq!(settings.differences(own), [] as [&str; 0]);
    let settings = with_base(&[("join", "10.0.0.1:4801"), ("name", "west")]).unwrap();
    let own = settings.members.first().unwrap();
    assert_eq!(settings.differences(own).len(), 4);
    assert!(with_base(&[("name", "a b")]).is_err());
}

#[test]
fn a_redis_address_is_checked_although_nobody_listens_there() {
    let settings = with_base(&[("resp", "127.0.0.1:6379")]).unwrap();
    assert!(settings.resp.is_some());
    assert!(with_base(&[("resp", "nowhere")]).is_err());
}
