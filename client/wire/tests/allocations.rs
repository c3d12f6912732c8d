//! Counts what decoding allocates. Nothing may be allocated between bytes and `Request`.

use std::hint::black_box;
use std::time::Duration;

use bytes::BytesMut;
use kelp_wire::*;

#[track_caller]
fn check_decodes_without_allocation(request: &Request<'_>) {
    let mut bytes = BytesMut::new();
    encode_request(&mut bytes, RequestId::new(1), request).expect("within limits");
    let mut decoded = None;
    let counts = allocation_counter::measure(|| {
        decoded = Some(decode_request(black_box(&bytes), &FrameLimits::FULL));
    });
    assert_eq!(counts.count_total, 0, "allocations for {request:?}");
    let Some(Ok(Decode::Frame { request: back, .. })) = decoded else {
        panic!("{request:?} does not come back")
    };
    assert_eq!(back.as_ref(), Ok(request));
}

fn write_options() -> WriteOptions {
    WriteOptions {
        deadline: Some(Duration::from_secs(1)),
        session: Some(Session {
            client: ClientId::new([7; 16]),
            sequence: 2,
            floor: 1,
        }),
    }
}

#[test]
fn counter_counts() {
    let counts = allocation_counter::measure(|| {
        black_box(vec![0_u8; 100]);
    });
    assert_eq!(counts.count_total, 1);
}

#[test]
fn put_is_decoded_without_allocation() {
    for options in [WriteOptions::default(), write_options()] {
        check_decodes_without_allocation(&Request::Put {
            database: 3,
            key: b"key",
            value: &[1; 1_000],
            options,
        });
    }
}

#[test]
fn get_is_decoded_without_allocation() {
    let stale = ReadOptions {
        deadline: Some(Duration::from_secs(1)),
        consistency: Consistency::Stale {
            max_age: Duration::from_secs(5),
        },
        token: None,
    };
    for options in [ReadOptions::default(), stale] {
        check_decodes_without_allocation(&Request::Get {
            database: 3,
            key: b"key",
            options,
        });
    }
}

#[test]
fn delete_and_scan_are_decoded_without_allocation() {
    check_decodes_without_allocation(&Request::Delete {
        database: 0,
        key: b"key",
        options: write_options(),
    });
    check_decodes_without_allocation(&Request::Scan(Scan {
        cursor: Some(b"cursor"),
        bound: ScanBound::Prefix(b"prefix"),
        limit: Some(10),
        keys_only: true,
        ..Scan::default()
    }));
}

#[test]
fn refusing_a_huge_frame_allocates_nothing() {
    let header = [
        MAGIC, 2, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF,
    ];
    let counts = allocation_counter::measure(|| {
        assert!(decode_request(black_box(&header), &FrameLimits::FULL).is_err());
    });
    assert_eq!(counts.count_total, 0);
}

#[test]
fn response_is_encoded_into_a_roomy_buffer_without_allocation() {
    let mut out = BytesMut::with_capacity(4_096);
    let response = Response {
        fields: ResponseFields::with_revision(Revision::new(65_537)),
        value: b"value",
        ..Response::new(RequestId::new(1), Opcode::Get, Status::Ok)
    };
    let counts = allocation_counter::measure(|| encode_response(&mut out, &response));
    assert_eq!(counts.count_total, 0);
}

#[test]
fn redis_commands_are_parsed_and_answered_without_allocation_once_the_parser_is_warm() {
    let stream = b"*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$5\r\nvalue\r\n*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n";
    let mut parser = RespParser::new(RespLimits::NODE);
    let mut out = BytesMut::with_capacity(4_096);
    let mut run = || {
        let mut rest = &stream[..];
        while let Ok(RespStep::Command {
            consumed,
            arguments,
        }) = parser.parse(black_box(rest))
        {
            let mut encoder = RespEncoder::new(&mut out, RespVersion::V2);
            encoder.bulk(arguments.get(0).unwrap_or_default());
            rest = &rest[consumed..];
        }
        out.clear();
    };
    run();
    assert_eq!(allocation_counter::measure(run).count_total, 0);
}

#[test]
fn heartbeats_and_telemetry_are_decoded_without_allocation() {
    let golden = include_str!("../testdata/v1/datagrams.txt");
    for line in golden.lines() {
        let (name, hex) = line.split_once(' ').expect("a name and a datagram");
        let bytes: Vec<u8> = (0..hex.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal"))
            .collect();
        let mut decoded = 0;
        let counts = allocation_counter::measure(|| {
            let datagram = Datagram::decode(black_box(&bytes)).expect("a datagram");
            decoded += match datagram.opcode {
                DatagramOpcode::Heartbeat => {
                    let sealed = SealedHeartbeat::decode(&datagram).expect("a heartbeat");
                    usize::from(sealed.open(|_, _| true).is_some())
                }
                DatagramOpcode::Telemetry => Telemetry::decode(&datagram).readings().count(),
            };
        });
        assert_eq!(counts.count_total, 0, "allocations for {name}");
        assert!(decoded > 0, "{name} is empty");
    }
}
