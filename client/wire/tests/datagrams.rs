//! Datagrams: the exact bytes of version 1, what comes back, and what is refused.

use std::fmt::Write;

use bytes::BytesMut;
use kelp_wire::*;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// Each line is a name and a datagram in hexadecimal, kept for ever.
const GOLDEN: &str = include_str!("../testdata/v1/datagrams.txt");

/// Stands in for the MAC, which is the caller's business: the length of what is signed, repeated.
fn mac(signed: &[u8]) -> [u8; HEARTBEAT_MAC_BYTES] {
    [u8::try_from(signed.len()).expect("heartbeats are short"); HEARTBEAT_MAC_BYTES]
}

fn encode(heartbeat: &Heartbeat<'_>) -> BytesMut {
    let mut bytes = BytesMut::new();
    heartbeat.encode(&mut bytes, mac);
    bytes
}

fn decode(bytes: &[u8]) -> Result<SealedHeartbeat<'_>, DatagramFault> {
    let datagram = Datagram::decode(bytes)?;
    assert_eq!(datagram.opcode, DatagramOpcode::Heartbeat);
    SealedHeartbeat::decode(&datagram)
}

fn opened(bytes: &[u8]) -> Heartbeat<'_> {
    let sealed = decode(bytes).expect("it is a heartbeat");
    let heartbeat = sealed.open(|signed, found| mac(signed) == *found);
    heartbeat.expect("the MAC is that of the bytes before it")
}

fn full() -> Heartbeat<'static> {
    Heartbeat {
        cluster: ClusterId::new([0xCE; 16]),
        group: 0,
        node: NodeId::new(2),
        role: HeartbeatRole::Leader,
        key: HeartbeatKeyId::new(*b"key id 8"),
        boot: 3,
        sequence: 41,
        interval_millis: 100,
        sent: HeartbeatStamp {
            monotonic_nanos: 5_000_000_000,
            wall_millis: 1_767_225_600_000,
        },
        term: 7,
        committed: Some(100),
        applied: Some(99),
        sync_age_millis: Some(12),
        sync_p99_micros: Some(2_048),
        disk_free_bytes: Some(1 << 40),
        memory_bytes: Some(50 << 20),
        echo: Some(HeartbeatEcho {
            boot: 9,
            sequence: 17,
            sent: HeartbeatStamp {
                monotonic_nanos: 4_000_000_000,
                wall_millis: 1_767_225_599_000,
            },
            received_wall_millis: 1_767_225_599_001,
            held_nanos: 60_000_000,
            received: 98,
            window: 100,
        }),
        software_version: "0.1.0",
    }
}

/// The first heartbeat of a node that has nothing to tell yet.
fn bare() -> Heartbeat<'static> {
    Heartbeat {
        role: HeartbeatRole::Follower,
        sequence: 1,
        term: 0,
        committed: None,
        applied: None,
        sync_age_millis: None,
        sync_p99_micros: None,
        disk_free_bytes: None,
        memory_bytes: None,
        echo: None,
        software_version: "",
        ..full()
    }
}

fn readings() -> Vec<Reading<'static>> {
    [("queue.depth", 3.0), ("temperature_celsius", -21.5)]
        .map(|(name, value)| Reading { name, value })
        .to_vec()
}

fn golden(name: &str) -> Vec<u8> {
    let line = GOLDEN
        .lines()
        .find_map(|line| line.strip_prefix(&format!("{name} ")))
        .expect("every datagram has its line");
    (0..line.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&line[at..at + 2], 16).expect("golden files are hexadecimal"))
        .collect()
}

#[test]
fn datagrams_encode_to_the_bytes_of_version_1() {
    let mut telemetry = BytesMut::new();
    encode_telemetry(&mut telemetry, &readings()).unwrap();
    let datagrams = [
        ("heartbeat_full", encode(&full())),
        ("heartbeat_bare", encode(&bare())),
        ("telemetry", telemetry),
    ];
    let mut text = String::new();
    for (name, bytes) in datagrams {
        write!(text, "{name} ").unwrap();
        for byte in bytes {
            write!(text, "{byte:02x}").unwrap();
        }
        text.push('\n');
    }
    assert_eq!(text, GOLDEN, "the encoders now give:\n{text}");
}

#[test]
fn datagrams_of_version_1_are_still_understood() {
    assert_eq!(opened(&golden("heartbeat_full")), full());
    assert_eq!(opened(&golden("heartbeat_bare")), bare());
    let bytes = golden("telemetry");
    let datagram = Datagram::decode(&bytes).unwrap();
    let back: Result<Vec<_>, _> = Telemetry::decode(&datagram).readings().collect();
    assert_eq!(back, Ok(readings()));
}

#[test]
fn four_bytes_are_a_datagram_and_no_heartbeat() {
    let bytes = b"\xa1\x06\x00\x00";
    let datagram = Datagram::decode(bytes).unwrap();
    assert_eq!(datagram.opcode, DatagramOpcode::Heartbeat);
    assert!(datagram.body().is_empty());
    assert_eq!(decode(bytes).unwrap_err(), DatagramFault::BadBody);
}

#[test]
fn what_is_no_datagram_is_refused_by_its_fault() {
    let refused = |bytes: &[u8]| Datagram::decode(bytes).unwrap_err();
    assert_eq!(refused(b""), DatagramFault::Short);
    assert_eq!(refused(b"\xa1\x06\x00"), DatagramFault::Short);
    assert_eq!(refused(b"GET /"), DatagramFault::BadMagic { got: b'G' });
    assert_eq!(
        refused(b"\xa1\x02\x00\x00"),
        DatagramFault::UnknownOpcode { got: 2 }
    );
    for bytes in [&b"\xa1\x05\x00\x01"[..], b"\xa1\x05\x00\x00a"] {
        let got = bytes.len();
        assert_eq!(refused(bytes), DatagramFault::BadLength { got });
    }
    let mut long = vec![b'a'; DATAGRAM_BYTES_MAX + 1];
    long[..4].copy_from_slice(&[MAGIC, 5, 4, 0xAD]);
    let got = long.len();
    assert_eq!(refused(&long), DatagramFault::BadLength { got });
}

#[test]
fn a_heartbeat_that_ends_early_is_refused_at_every_length() {
    let whole = encode(&full());
    for length in DATAGRAM_HEADER_BYTES..whole.len() {
        let mut cut = whole[..length].to_vec();
        let body = u16::try_from(length - DATAGRAM_HEADER_BYTES).unwrap();
        cut[2..4].copy_from_slice(&body.to_be_bytes());
        assert_eq!(
            decode(&cut).unwrap_err(),
            DatagramFault::BadBody,
            "{length}"
        );
    }
}

#[test]
fn a_heartbeat_of_another_version_is_refused() {
    let mut bytes = encode(&full());
    bytes[4] = 2;
    let expected = DatagramFault::UnknownVersion { got: 2 };
    assert_eq!(decode(&bytes).unwrap_err(), expected);
}

#[test]
fn fields_of_a_later_version_before_the_mac_are_skipped() {
    let bytes = encode(&full());
    let (fields, _) = bytes.split_at(bytes.len() - HEARTBEAT_MAC_BYTES);
    let mut longer = [fields, b"later"].concat();
    let body = u16::try_from(longer.len() + HEARTBEAT_MAC_BYTES - DATAGRAM_HEADER_BYTES).unwrap();
    longer[2..4].copy_from_slice(&body.to_be_bytes());
    let mac = mac(&longer);
    longer.extend_from_slice(&mac);
    assert_eq!(opened(&longer), full());
}

#[test]
fn nothing_comes_out_of_a_heartbeat_whose_mac_is_wrong() {
    let bytes = encode(&full());
    assert_eq!(decode(&bytes).unwrap().open(|_, _| false), None);
}

#[test]
fn a_long_software_version_is_cut_between_characters() {
    let version = "x".repeat(SOFTWARE_VERSION_BYTES_MAX - 1) + "é";
    let bytes = encode(&Heartbeat {
        software_version: &version,
        ..full()
    });
    assert!(bytes.len() <= HEARTBEAT_BYTES_MAX);
    let expected = &version[..SOFTWARE_VERSION_BYTES_MAX - 1];
    assert_eq!(opened(&bytes).software_version, expected);
}

#[test]
fn each_pair_of_telemetry_stands_for_itself() {
    let body = b"a=1\n\n=2\nb=\nc=inf\n9d=1\ne=1e999\nf\ng.h_2=+2.5e-1\n";
    let mut bytes = vec![MAGIC, 5, 0, u8::try_from(body.len()).unwrap()];
    bytes.extend_from_slice(body);
    let datagram = Datagram::decode(&bytes).unwrap();
    let readings: Vec<_> = Telemetry::decode(&datagram).readings().collect();
    let reading = |name, value| Ok(Reading { name, value });
    let (name, value) = (Err(ReadingFault::BadName), Err(ReadingFault::BadValue));
    assert_eq!(
        readings,
        [
            reading("a", 1.0),
            name,
            value,
            value,
            name,
            value,
            name,
            reading("g.h_2", 0.25)
        ]
    );
}

#[test]
fn telemetry_that_breaks_a_rule_is_not_encoded() {
    let long = "n".repeat(TELEMETRY_NAME_BYTES_MAX + 1);
    let cases = [
        (long.as_str(), 1.0, ReadingFault::BadName),
        ("", 1.0, ReadingFault::BadName),
        ("a b", 1.0, ReadingFault::BadName),
        ("a", f64::NAN, ReadingFault::BadValue),
        ("a", f64::INFINITY, ReadingFault::BadValue),
    ];
    for (name, value, fault) in cases {
        let mut out = BytesMut::new();
        let readings = [Reading { name, value }];
        assert_eq!(encode_telemetry(&mut out, &readings), Err(fault), "{name}");
        assert!(out.is_empty());
    }
    let many = vec![
        Reading {
            name: "name",
            value: 1.0
        };
        200
    ];
    let mut out = BytesMut::new();
    let encoded = encode_telemetry(&mut out, &many);
    assert_eq!(encoded, Err(ReadingFault::NoRoom));
}

/// A heartbeat that owns its text, because strategies cannot borrow.
fn heartbeats() -> impl Strategy<Value = (Heartbeat<'static>, String)> {
    let stamp = || {
        any::<(u64, u64)>().prop_map(|(monotonic_nanos, wall_millis)| HeartbeatStamp {
            monotonic_nanos,
            wall_millis,
        })
    };
    let echo = (any::<[u64; 4]>(), stamp(), any::<[u16; 2]>()).prop_map(
        |([boot, sequence, received_wall_millis, held_nanos], sent, [received, window])| {
            HeartbeatEcho {
                boot,
                sequence,
                sent,
                received_wall_millis,
                held_nanos,
                received,
                window,
            }
        },
    );
    let role = prop_oneof![
        Just(HeartbeatRole::Other),
        Just(HeartbeatRole::Leader),
        Just(HeartbeatRole::Follower),
        Just(HeartbeatRole::Candidate),
        Just(HeartbeatRole::Learner),
    ];
    let numbers = (any::<[u64; 3]>(), any::<[Option<u64>; 4]>());
    let words = (any::<[Option<u32>; 2]>(), any::<u32>(), any::<[u16; 2]>());
    let parts = (numbers, words, role, stamp(), option::of(echo), "\\PC{0,8}");
    parts.prop_map(|(numbers, words, role, sent, echo, version)| {
        let ([boot, sequence, term], [committed, applied, disk_free_bytes, memory_bytes]) = numbers;
        let ([sync_age_millis, sync_p99_micros], group, [node, interval_millis]) = words;
        let heartbeat = Heartbeat {
            group,
            node: NodeId::new(node),
            role,
            boot,
            sequence,
            interval_millis,
            sent,
            term,
            committed,
            applied,
            sync_age_millis,
            sync_p99_micros,
            disk_free_bytes,
            memory_bytes,
            echo,
            ..full()
        };
        (heartbeat, version)
    })
}

proptest! {
    #[test]
    fn heartbeats_come_back((heartbeat, version) in heartbeats()) {
        let heartbeat = Heartbeat { software_version: &version, ..heartbeat };
        let bytes = encode(&heartbeat);
        prop_assert!(bytes.len() <= HEARTBEAT_BYTES_MAX);
        prop_assert_eq!(opened(&bytes), heartbeat);
    }

    #[test]
    fn readings_come_back(
        names in vec("[a-zA-Z_][a-zA-Z0-9_.]{0,20}", 0..20),
        value in any::<f64>().prop_filter("finite", |value| value.is_finite()),
    ) {
        let readings: Vec<_> = names.iter().map(|name| Reading { name, value }).collect();
        let mut bytes = BytesMut::new();
        encode_telemetry(&mut bytes, &readings).unwrap();
        let datagram = Datagram::decode(&bytes).unwrap();
        let back: Result<Vec<_>, _> = Telemetry::decode(&datagram).readings().collect();
        prop_assert_eq!(back, Ok(readings));
    }

    #[test]
    fn no_bytes_make_a_decoder_panic(mut bytes in vec(any::<u8>(), 4..400), sound: bool) {
        if sound {
            let body = u16::try_from(bytes.len() - DATAGRAM_HEADER_BYTES).unwrap();
            let [high, low] = body.to_be_bytes();
            let opcode = 5 + (bytes[1] & 1);
            bytes[..4].copy_from_slice(&[MAGIC, opcode, high, low]);
        }
        if let Ok(datagram) = Datagram::decode(&bytes) {
            let _ = SealedHeartbeat::decode(&datagram);
            let pairs = Telemetry::decode(&datagram).readings().count();
            prop_assert!(pairs <= bytes.len());
        }
    }
}
