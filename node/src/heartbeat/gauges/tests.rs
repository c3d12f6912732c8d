use std::net::{Ipv4Addr, Ipv6Addr};

use bytes::BytesMut;
use kelp_wire::{Datagram, encode_telemetry};

use super::*;

const OWN: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn at(seconds: u64) -> Monotonic {
    Monotonic::from_nanos(0) + Duration::from_secs(seconds)
}

fn send(gauges: &Gauges, name: &str, value: f64, from: IpAddr, now: Monotonic) {
    let mut bytes = BytesMut::new();
    encode_telemetry(&mut bytes, &[Reading { name, value }]).unwrap();
    let datagram = Datagram::decode(&bytes).unwrap();
    gauges.take(&Telemetry::decode(&datagram), from, now);
}

fn names(gauges: &Gauges, now: Monotonic) -> Vec<String> {
    gauges
        .values(now)
        .into_iter()
        .map(|(name, _)| name)
        .collect()
}

#[test]
fn telemetry_that_nobody_asked_for_is_counted_and_not_kept() {
    let gauges = Gauges::new(TelemetryMode::Off, OWN);
    send(&gauges, "a", 1.0, LOOPBACK, at(0));
    assert_eq!(gauges.values(at(0)), []);
    assert_eq!((gauges.datagrams(), gauges.dropped()), (1, 0));
}

#[test]
fn local_telemetry_comes_from_loopback_or_the_own_address() {
    let gauges = Gauges::new(TelemetryMode::Local, OWN);
    let mapped = IpAddr::V6(Ipv4Addr::new(10, 0, 0, 1).to_ipv6_mapped());
    let from = [
        ("a", LOOPBACK),
        ("b", OWN),
        ("c", OTHER),
        ("d", IpAddr::V6(Ipv6Addr::LOCALHOST)),
        ("e", mapped),
    ];
    for (name, from) in from {
        send(&gauges, name, 1.0, from, at(0));
    }
    assert_eq!(names(&gauges, at(0)), ["a", "b", "d", "e"]);
    assert_eq!((gauges.datagrams(), gauges.dropped()), (5, 1));
}

#[test]
fn a_node_that_listens_everywhere_takes_local_telemetry_from_loopback_only() {
    let everywhere = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let gauges = Gauges::new(TelemetryMode::Local, everywhere);
    send(&gauges, "a", 1.0, everywhere, at(0));
    send(&gauges, "b", 1.0, LOOPBACK, at(0));
    assert_eq!(names(&gauges, at(0)), ["b"]);
}

#[test]
fn the_newest_value_of_a_name_counts() {
    let gauges = Gauges::new(TelemetryMode::Any, OWN);
    send(&gauges, "a", 1.0, OTHER, at(0));
    send(&gauges, "a", -2.5, OTHER, at(1));
    assert_eq!(gauges.values(at(1)), [("a".to_owned(), -2.5)]);
}

#[test]
fn a_value_is_forgotten_after_five_minutes() {
    let gauges = Gauges::new(TelemetryMode::Any, OWN);
    send(&gauges, "a", 1.0, OTHER, at(0));
    send(&gauges, "b", 1.0, OTHER, at(10));
    assert_eq!(names(&gauges, at(299)), ["a", "b"]);
    assert_eq!(names(&gauges, at(300)), ["b"]);
}

#[test]
fn names_beyond_the_limit_are_dropped_until_there_is_a_place() {
    let gauges = Gauges::new(TelemetryMode::Any, OWN);
    for number in 0..300 {
        send(&gauges, &format!("n{number}"), 1.0, OTHER, at(0));
    }
    assert_eq!(gauges.values(at(0)).len(), NAMES_MAX);
    assert_eq!(gauges.dropped(), 44);
    send(&gauges, "n0", 2.0, OTHER, at(0));
    assert_eq!(gauges.dropped(), 44, "a name that has its place keeps it");
    send(&gauges, "new", 2.0, OTHER, at(400));
    assert_eq!(names(&gauges, at(400)), ["new"]);
}
