//! What the decoder makes of sound, broken and hostile requests.

use std::time::Duration;

use bytes::{BufMut, BytesMut};

use super::*;
use crate::{
    CURSOR_BYTES_MAX, ClientId, Consistency, FRAME_BYTES_MAX, FRAME_BYTES_MAX_BEFORE_HELLO,
    FrameError, FrameFault, FrameLimits, HEADER_BYTES, KEY_BYTES_MAX, MAGIC, OptionFault,
    RequestError, RequestHeader, RequestId, Session, SessionToken, Status, VALUE_BYTES_MAX,
};

const ID: RequestId = RequestId::new(7);

fn frame(opcode: u8, extra: &[u8], key: &[u8], value: &[u8]) -> BytesMut {
    let header = RequestHeader {
        magic: MAGIC,
        opcode,
        flags: 0,
        id: ID,
        key_bytes: u16::try_from(key.len()).unwrap(),
        extra_bytes: u16::try_from(extra.len()).unwrap(),
        value_bytes: u32::try_from(value.len()).unwrap(),
    };
    let mut out = BytesMut::new();
    out.put_slice(&header.encode());
    out.put_slice(extra);
    out.put_slice(key);
    out.put_slice(value);
    out
}

fn decode(bytes: &[u8]) -> Result<Decode<'_>, FrameError> {
    decode_request(bytes, &FrameLimits::FULL)
}

fn body(bytes: &[u8]) -> Result<Request<'_>, RequestError> {
    match decode(bytes).expect("frame is sound") {
        Decode::Frame {
            consumed,
            id,
            opcode,
            request,
        } => {
            assert_eq!(consumed, bytes.len());
            assert_eq!(id, ID);
            assert_eq!(opcode, bytes[1]);
            request
        }
        Decode::Incomplete { needed } => panic!("needs {needed} bytes of {}", bytes.len()),
    }
}

fn option(tag: u8, value: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    out.put_u16(u16::try_from(value.len()).unwrap());
    out.put_slice(value);
    out
}

#[track_caller]
fn check_option(opcode: u8, extra: &[u8], expected_tag: u8, expected: OptionFault) {
    let error = body(&frame(opcode, extra, b"k", b"")).unwrap_err();
    assert_eq!(
        error,
        RequestError::BadOption {
            tag: expected_tag,
            fault: expected
        }
    );
    assert_eq!(error.status(), Status::BadRequest);
}

#[test]
fn plain_requests_borrow_their_parts() {
    let bytes = frame(0x02, b"", b"key", b"value");
    let expected = Request::Put {
        database: 0,
        key: b"key",
        value: b"value",
        options: WriteOptions::default(),
    };
    assert_eq!(body(&bytes), Ok(expected));
    let Ok(Request::Put { key, .. }) = body(&bytes) else {
        panic!("a put")
    };
    assert!(bytes.as_ptr_range().contains(&key.as_ptr()));
}

#[test]
fn frame_is_whole_only_with_its_last_byte() {
    let bytes = frame(0x02, b"", b"key", b"value");
    for end in 0..bytes.len() {
        let needed = if end < HEADER_BYTES {
            HEADER_BYTES
        } else {
            bytes.len()
        };
        assert_eq!(decode(&bytes[..end]), Ok(Decode::Incomplete { needed }));
    }
}

#[test]
fn bytes_behind_the_frame_are_not_touched() {
    let mut bytes = frame(0x10, b"", b"", b"");
    bytes.put_slice(b"garbage");
    let Ok(Decode::Frame { consumed, .. }) = decode(&bytes) else {
        panic!("a frame")
    };
    assert_eq!(consumed, HEADER_BYTES);
}

#[test]
fn wrong_magic_is_found_at_the_first_byte() {
    let error = decode(b"G").unwrap_err();
    assert_eq!(error.fault, FrameFault::BadMagic { got: b'G' });
    assert_eq!(error.id, RequestId::new(0));
    assert_eq!(error.status(), Status::BadRequest);
    let mut out = BytesMut::new();
    error.encode(&mut out);
    assert_eq!(&out[..4], [0xA1, 0xFF, 48, 0]);
    assert_eq!(
        &out[HEADER_BYTES..],
        b"bad frame: magic is 0x47, expected 0xa1"
    );
}

#[test]
fn unknown_flags_break_the_stream() {
    let mut bytes = frame(0x03, b"", b"k", b"");
    bytes[3] = 0x02;
    let error = decode(&bytes).unwrap_err();
    assert_eq!(error.fault, FrameFault::UnknownFlags { got: 2 });
    assert_eq!((error.id, error.opcode), (ID, 0x03));
}

#[test]
fn response_sent_to_a_node_breaks_the_stream() {
    let error = decode(&frame(0x83, b"", b"k", b"")).unwrap_err();
    assert_eq!(error.fault, FrameFault::WrongDirection { got: 0x83 });
}

#[test]
fn too_long_a_frame_is_refused_from_its_header_alone() {
    let mut bytes = frame(0x02, b"", b"k", b"");
    for value_bytes in [u32::MAX, 1 << 31, u32::try_from(FRAME_BYTES_MAX).unwrap()] {
        bytes[12..16].copy_from_slice(&value_bytes.to_be_bytes());
        let error = decode(&bytes[..HEADER_BYTES]).unwrap_err();
        assert_eq!(
            error.fault,
            FrameFault::FrameTooLong {
                bytes: 17 + u64::from(value_bytes),
                bytes_max: FRAME_BYTES_MAX
            }
        );
        assert_eq!(error.status(), Status::TooLarge);
    }
}

#[test]
fn frame_before_hello_is_at_most_64_kib() {
    let check = |value_bytes: usize| {
        let value = vec![0; value_bytes];
        let bytes = frame(0x01, b"", b"", &value);
        decode_request(&bytes, &FrameLimits::BEFORE_HELLO).is_ok()
    };
    assert!(check(FRAME_BYTES_MAX_BEFORE_HELLO - HEADER_BYTES));
    assert!(!check(FRAME_BYTES_MAX_BEFORE_HELLO - HEADER_BYTES + 1));
}

#[test]
fn key_limits_are_answered_per_request() {
    let longest = vec![1; KEY_BYTES_MAX];
    assert!(body(&frame(0x03, b"", &longest, b"")).is_ok());
    let longer = vec![1; KEY_BYTES_MAX + 1];
    let error = body(&frame(0x03, b"", &longer, b"")).unwrap_err();
    assert_eq!(error.status(), Status::TooLarge);
    for opcode in [0x02, 0x03, 0x04] {
        let bytes = frame(opcode, b"", b"", b"");
        assert_eq!(body(&bytes), Err(RequestError::EmptyKey));
    }
}

#[test]
fn value_limit_is_answered_per_request() {
    let longest = vec![1; VALUE_BYTES_MAX];
    assert!(body(&frame(0x02, b"", b"k", &longest)).is_ok());
    let longer = vec![1; VALUE_BYTES_MAX + 1];
    let error = body(&frame(0x02, b"", b"k", &longer)).unwrap_err();
    assert_eq!(error.status(), Status::TooLarge);
}

#[test]
fn too_many_options_are_answered_per_request() {
    let extra = vec![0; 4 * 1024 + 1];
    let error = body(&frame(0x03, &extra, b"k", b"")).unwrap_err();
    assert_eq!(error.status(), Status::TooLarge);
}

#[test]
fn parts_that_mean_nothing_are_refused() {
    let unexpected = |opcode, part| Err(RequestError::UnexpectedPart { opcode, part });
    let check = |opcode, key: &[u8], value: &[u8], expected| {
        assert_eq!(body(&frame(opcode, b"", key, value)), expected);
    };
    check(0x03, b"k", b"v", unexpected(Opcode::Get, "value"));
    check(0x04, b"k", b"v", unexpected(Opcode::Delete, "value"));
    check(0x01, b"k", b"", unexpected(Opcode::Echo, "key"));
    check(0x08, b"k", b"", unexpected(Opcode::Hello, "key"));
    check(0x10, b"k", b"", unexpected(Opcode::Status, "key"));
    check(0x10, b"", b"v", unexpected(Opcode::Status, "value"));
}

#[test]
fn unknown_and_reserved_opcodes_are_answered_as_unsupported() {
    for opcode in 0..0x80 {
        let bytes = frame(opcode, b"", b"k", b"");
        if Opcode::from_byte(opcode).is_some() {
            assert_eq!(Opcode::response_byte(opcode), opcode | 0x80);
            continue;
        }
        let error = body(&bytes).unwrap_err();
        assert_eq!(error, RequestError::UnsupportedOpcode { opcode });
        assert_eq!(error.status(), Status::Unsupported);
        assert_eq!(Opcode::response_byte(opcode), 0xFF);
    }
}

#[test]
fn malformed_options_are_named() {
    check_option(0x03, &[0x01], 0, OptionFault::Truncated);
    check_option(0x03, &[0x01, 0, 2, 9], 0, OptionFault::Truncated);
    check_option(0x03, &option(0x01, &[1, 2]), 0x01, OptionFault::BadValue);
    check_option(0x03, &option(0x02, &[2]), 0x02, OptionFault::BadValue);
    check_option(0x02, &option(0x04, &[0; 31]), 0x04, OptionFault::BadValue);
    check_option(0x03, &option(0x06, &[0; 25]), 0x06, OptionFault::BadValue);
    check_option(0x07, &option(0x12, &[0]), 0x12, OptionFault::BadValue);
    check_option(0x03, &option(0x1F, &[]), 0x1F, OptionFault::Unknown);
    check_option(0x03, &option(0xFF, &[]), 0xFF, OptionFault::Unknown);
    check_option(0x03, &option(0x10, &[0; 4]), 0x10, OptionFault::Misplaced);
    check_option(0x01, &option(0x03, &[0; 4]), 0x03, OptionFault::Misplaced);
    let twice = [option(0x01, &[1]), option(0x01, &[1])].concat();
    check_option(0x03, &twice, 0x01, OptionFault::Repeated);
}

#[test]
fn ttl_is_reserved() {
    let bytes = frame(0x02, &option(0x05, &[0; 8]), b"k", b"v");
    let error = body(&bytes).unwrap_err();
    assert_eq!(error, RequestError::UnsupportedOption { tag: 0x05 });
    assert_eq!(error.status(), Status::Unsupported);
}

#[test]
fn write_options_are_read() {
    let mut session = vec![3; 16];
    session.put_u64(12);
    session.put_u64(10);
    let extra = [
        option(0x04, &session),
        option(0x03, &1_500_u32.to_be_bytes()),
        option(0x01, &[5]),
    ]
    .concat();
    let expected = Request::Delete {
        database: 5,
        key: b"k",
        options: WriteOptions {
            deadline: Some(Duration::from_millis(1_500)),
            session: Some(Session {
                client: ClientId::new([3; 16]),
                sequence: 12,
                floor: 10,
            }),
        },
    };
    assert_eq!(body(&frame(0x04, &extra, b"k", b"")), Ok(expected));
}

#[test]
fn read_options_are_read() {
    let mut token = Vec::new();
    token.put_u64(1);
    token.put_u64(0);
    token.put_u64(3);
    let extra = [option(0x02, &[1, 0, 0, 1, 0]), option(0x06, &token)].concat();
    let expected = Request::Get {
        database: 0,
        key: b"k",
        options: ReadOptions {
            deadline: None,
            consistency: Consistency::Stale {
                max_age: Duration::from_millis(256),
            },
            token: Some(SessionToken {
                term: 1,
                index: 0,
                epoch: 3,
            }),
        },
    };
    assert_eq!(body(&frame(0x03, &extra, b"k", b"")), Ok(expected));
}

#[test]
fn scan_parts_mean_what_the_switches_say() {
    let scan = |extra: &[u8], key: &[u8], value: &[u8]| {
        let bytes = frame(0x07, extra, key, value);
        match body(&bytes) {
            Ok(Request::Scan(scan)) => Ok(format!(
                "{:?} {:?} {:?}",
                scan.start, scan.bound, scan.cursor
            )),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error),
        }
    };
    assert_eq!(scan(b"", b"", b"").unwrap(), "[] Unbounded None");
    assert_eq!(scan(b"", &[1], &[2]).unwrap(), "[1] Before([2]) None");
    let prefix = option(0x15, &[]);
    assert_eq!(scan(&prefix, b"", &[2]).unwrap(), "[] Prefix([2]) None");
    assert_eq!(scan(&prefix, b"", b""), Err(RequestError::EmptyKey));
    let cursor = option(0x14, &[]);
    assert_eq!(
        scan(&cursor, &[1], &[2]).unwrap(),
        "[] Before([2]) Some([1])"
    );
    assert_eq!(scan(&cursor, b"", b""), Err(RequestError::EmptyKey));
    let back = [option(0x12, &[]), cursor.clone()].concat();
    assert_eq!(
        scan(&back, &[1], &[2]).unwrap(),
        "[1] Unbounded Some([2])",
        "in reverse the cursor takes the place of the upper end"
    );
    assert_eq!(scan(&back, &[1], b""), Err(RequestError::EmptyKey));
    let both = [back.clone(), prefix.clone()].concat();
    assert!(scan(&both, b"", &[2]).is_err());
    let longest = vec![1; CURSOR_BYTES_MAX];
    assert!(scan(&cursor, &longest, b"").is_ok());
    assert!(scan(b"", &longest, b"").is_err());
}

#[test]
fn scan_page_stays_within_protocol_limits() {
    let page = |limit, bytes| {
        let scan = Scan {
            limit,
            bytes,
            ..Scan::default()
        };
        (scan.page_entries_max(), scan.page_bytes_max())
    };
    assert_eq!(page(None, None), (1_000, 1024 * 1024));
    assert_eq!(page(Some(0), Some(0)), (1, 0));
    assert_eq!(
        page(Some(u32::MAX), Some(u32::MAX)),
        (10_000, 4 * 1024 * 1024)
    );
}

#[test]
fn empty_hello_means_version_1_without_login() {
    let bytes = frame(0x08, b"", b"", b"");
    let Ok(Request::Hello(hello)) = body(&bytes) else {
        panic!("a hello")
    };
    assert_eq!(hello, Hello::default());
    assert!(hello.version_matches());
}

#[test]
fn hello_must_fit_its_layout_exactly() {
    let mut value = BytesMut::new();
    let hello = Hello {
        user: "ann",
        password: b"secret",
        ..Hello::default()
    };
    hello.encode(&mut value).unwrap();
    for end in 1..value.len() {
        let bytes = frame(0x08, b"", b"", &value[..end]);
        assert_eq!(body(&bytes), Err(RequestError::BadHello), "{end} bytes");
    }
    value.put_u8(0);
    let bytes = frame(0x08, b"", b"", &value);
    assert_eq!(body(&bytes), Err(RequestError::BadHello));
    assert!(!format!("{hello:?}").contains("secret"));
    assert!(
        !format!("{hello:?}").contains("115"),
        "not as numbers either"
    );
}

#[test]
fn refused_request_leaves_the_buffer_as_it_was() {
    let mut out = BytesMut::from(&b"before"[..]);
    let name = "n".repeat(256);
    let refused = [
        Request::Get {
            database: 0,
            key: b"",
            options: ReadOptions::default(),
        },
        Request::Hello(Hello {
            user: &name,
            ..Hello::default()
        }),
        Request::Scan(Scan {
            bound: ScanBound::Before(b""),
            ..Scan::default()
        }),
    ];
    for request in refused {
        assert!(encode_request(&mut out, ID, &request).is_err());
        assert_eq!(&out[..], b"before");
    }
}

#[test]
fn short_deadlines_do_not_become_none() {
    let mut out = BytesMut::new();
    let request = Request::Get {
        database: 0,
        key: b"k",
        options: ReadOptions::default(),
    }
    .with_deadline(Duration::from_micros(10));
    encode_request(&mut out, ID, &request).unwrap();
    let Ok(Request::Get { options, .. }) = body(&out) else {
        panic!("a get")
    };
    assert_eq!(options.deadline, Some(Duration::from_millis(1)));
}
