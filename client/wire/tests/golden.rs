//! The exact bytes of version 1, kept for ever in `testdata/v1/frames.txt`.
//!
//! Each line of the file is a name and the frame in hexadecimal. A frame that no longer encodes to
//! its line is a change of the protocol: it needs a new version, not a new line here.

use std::fmt::Write;
use std::time::Duration;

use bytes::BytesMut;
use kelp_wire::*;

const GOLDEN: &str = include_str!("../testdata/v1/frames.txt");

const ID: RequestId = RequestId::new(0x0102_0304);

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("strings take all writes");
        text
    })
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("golden files are hexadecimal"))
        .collect()
}

fn requests() -> Vec<(&'static str, Request<'static>)> {
    let key = b"key";
    let token = SessionToken {
        term: 2,
        index: 10,
        epoch: 1,
    };
    let read = ReadOptions {
        deadline: Some(Duration::from_secs(5)),
        consistency: Consistency::Stale {
            max_age: Duration::from_millis(200),
        },
        token: Some(token),
    };
    let write = WriteOptions {
        deadline: Some(Duration::from_secs(5)),
        session: Some(Session {
            client: ClientId::new(*b"sixteen bytes id"),
            sequence: 12,
            floor: 10,
        }),
    };
    let login = Hello {
        version_min: 1,
        version_max: 1,
        features: 0,
        cluster: Some(ClusterId::new([0xCE; 16])),
        user: "ann",
        password: b"secret",
    };
    let plain_put = Request::Put {
        database: 0,
        key,
        value: b"value",
        options: WriteOptions::default(),
    };
    let full_put = Request::Put {
        database: 3,
        key,
        value: b"value",
        options: write,
    };
    let plain_get = Request::Get {
        database: 0,
        key,
        options: ReadOptions::default(),
    };
    let full_get = Request::Get {
        database: 3,
        key,
        options: read,
    };
    let delete = Request::Delete {
        database: 0,
        key,
        options: WriteOptions::default(),
    };
    let first_page = Scan {
        start: b"a",
        bound: ScanBound::Before(b"b"),
        limit: Some(100),
        bytes: Some(65_536),
        ..Scan::default()
    };
    let next_page = Scan {
        start: b"user/",
        cursor: Some(b"cursor"),
        reverse: true,
        keys_only: true,
        ..Scan::default()
    };
    vec![
        ("request_hello_login", Request::Hello(login)),
        ("request_echo", Request::Echo { value: b"hi" }),
        ("request_put", plain_put),
        ("request_put_options", full_put),
        ("request_get", plain_get),
        ("request_get_options", full_get),
        ("request_delete", delete),
        ("request_scan_first", Request::Scan(first_page)),
        ("request_scan_next", Request::Scan(next_page)),
        ("request_status", Request::Status),
    ]
}

fn hello_reply() -> HelloReply {
    HelloReply {
        version: 1,
        features: 0,
        cluster: ClusterId::new([0xCE; 16]),
        node: NodeId::new(2),
    }
}

fn scan_page() -> BytesMut {
    let mut page = BytesMut::new();
    for (key, value) in [(b"a1", &b"one"[..]), (b"a2", b"")] {
        let entry = ScanEntry {
            key,
            value,
            revision: Revision::new(65_536),
        };
        entry.encode(&mut page);
    }
    page
}

fn response_frames() -> Vec<(&'static str, BytesMut)> {
    let hello = hello_reply().encode();
    let page = scan_page();
    let revision = ResponseFields::with_revision(Revision::new(0x0001_0000));
    let refusal = ResponseFields {
        leader: Some(LeaderHint {
            node: NodeId::new(3),
            address: "10.0.0.3:4800",
        }),
        retry_after: Some(Duration::from_millis(100)),
        ..ResponseFields::default()
    };
    let responses = [
        (
            "response_hello",
            Response {
                value: &hello,
                ..Response::new(ID, Opcode::Hello, Status::Ok)
            },
        ),
        (
            "response_put",
            Response {
                fields: revision,
                ..Response::new(ID, Opcode::Put, Status::Ok)
            },
        ),
        (
            "response_get",
            Response {
                fields: revision,
                value: b"value",
                ..Response::new(ID, Opcode::Get, Status::Ok)
            },
        ),
        (
            "response_get_absent",
            Response::new(ID, Opcode::Get, Status::NotFound),
        ),
        (
            "response_scan",
            Response {
                key: b"cursor",
                value: &page,
                ..Response::new(ID, Opcode::Scan, Status::Ok)
            },
        ),
    ];
    let mut frames: Vec<_> = responses
        .into_iter()
        .map(|(name, response)| {
            let mut bytes = BytesMut::new();
            encode_response(&mut bytes, &response);
            (name, bytes)
        })
        .collect();
    let mut error = BytesMut::new();
    encode_error(
        &mut error,
        ID,
        0x02,
        Status::NoLeader,
        &refusal,
        "no leader",
    );
    frames.push(("response_no_leader", error));
    let mut error = BytesMut::new();
    let fault = decode_request(b"GET / HTTP/1.1", &FrameLimits::FULL).expect_err("HTTP");
    fault.encode(&mut error);
    frames.push(("response_bad_magic", error));
    frames
}

#[test]
fn frames_encode_to_the_bytes_of_version_1() {
    let mut text = String::new();
    for (name, request) in requests() {
        let mut bytes = BytesMut::new();
        encode_request(&mut bytes, ID, &request).unwrap();
        writeln!(text, "{name} {}", hex(&bytes)).unwrap();
    }
    for (name, bytes) in response_frames() {
        writeln!(text, "{name} {}", hex(&bytes)).unwrap();
    }
    assert_eq!(text, GOLDEN, "the encoders now give:\n{text}");
}

#[test]
fn requests_of_version_1_are_still_understood() {
    for (name, request) in requests() {
        let line = GOLDEN
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{name} ")))
            .expect("every request has its line");
        let bytes = unhex(line);
        let Ok(Decode::Frame { request: back, .. }) = decode_request(&bytes, &FrameLimits::FULL)
        else {
            panic!("{name} is no frame any more")
        };
        assert_eq!(back, Ok(request), "{name}");
    }
}
