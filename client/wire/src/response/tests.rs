//! What a client makes of sound, broken and hostile responses.

use std::time::Duration;

use bytes::{BufMut, BytesMut};

use super::*;
use crate::{Executed, LeaderHint, NodeId, Revision, SessionToken};

const ID: RequestId = RequestId::new(9);

fn decode(bytes: &[u8]) -> Result<Response<'_>, FrameFault> {
    match decode_response(bytes, &FrameLimits::FULL).map_err(|error| error.fault)? {
        DecodeResponse::Frame { consumed, response } => {
            assert_eq!(consumed, bytes.len());
            Ok(response)
        }
        DecodeResponse::Incomplete { needed } => panic!("needs {needed} bytes"),
    }
}

fn encoded(response: &Response<'_>) -> BytesMut {
    let mut out = BytesMut::new();
    encode_response(&mut out, response);
    out
}

#[test]
fn every_part_comes_back() {
    let response = Response {
        more: true,
        fields: ResponseFields {
            revision: Some(Revision::new(65_536)),
            leader: Some(LeaderHint {
                node: NodeId::new(3),
                address: "kelp-3.example:4800",
            }),
            retry_after: Some(Duration::from_millis(250)),
            token: Some(SessionToken {
                term: 1,
                index: 2,
                epoch: 3,
            }),
        },
        key: b"cursor",
        value: b"value",
        ..Response::new(ID, Opcode::Scan, Status::Ok)
    };
    assert_eq!(decode(&encoded(&response)), Ok(response));
}

#[test]
fn frame_is_whole_only_with_its_last_byte() {
    let bytes = encoded(&Response {
        value: b"value",
        ..Response::new(ID, Opcode::Get, Status::Ok)
    });
    for end in 0..bytes.len() {
        let decoded = decode_response(&bytes[..end], &FrameLimits::FULL);
        assert!(matches!(decoded, Ok(DecodeResponse::Incomplete { .. })));
    }
}

#[test]
fn broken_headers_are_named() {
    let sound = encoded(&Response::new(ID, Opcode::Get, Status::Ok));
    let check = |position: usize, byte: u8, expected: FrameFault| {
        let mut bytes = sound.clone();
        bytes[position] = byte;
        assert_eq!(decode(&bytes), Err(expected));
    };
    check(0, 0xA2, FrameFault::BadMagic { got: 0xA2 });
    check(1, 0x03, FrameFault::WrongDirection { got: 0x03 });
    check(2, 99, FrameFault::UnknownStatus { got: 99 });
    check(3, 0x03, FrameFault::UnknownFlags { got: 3 });
    check(8, 0xFF, FrameFault::BadBody);
    check(10, 0xFF, FrameFault::BadBody);
    check(
        12,
        0xFF,
        FrameFault::FrameTooLong {
            bytes: 0xFF00_0010,
            bytes_max: FrameLimits::FULL.frame_bytes_max,
        },
    );
}

fn with_extra(extra: &[u8]) -> BytesMut {
    let mut bytes = encoded(&Response::new(ID, Opcode::Get, Status::Ok));
    bytes[10..12].copy_from_slice(&u16::try_from(extra.len()).unwrap().to_be_bytes());
    bytes.put_slice(extra);
    bytes
}

#[test]
fn unknown_fields_are_skipped() {
    let bytes = with_extra(&[0x77, 0, 2, 1, 1]);
    assert_eq!(decode(&bytes).unwrap().fields, ResponseFields::default());
}

#[test]
fn malformed_fields_break_the_stream() {
    let cut: &[u8] = &[0x01, 0, 8, 0];
    let short: &[u8] = &[0x03, 0, 1, 0];
    let not_text: &[u8] = &[0x02, 0, 3, 0, 1, 0xFF];
    let twice: &[u8] = &[0x03, 0, 4, 0, 0, 0, 1, 0x03, 0, 4, 0, 0, 0, 1];
    for extra in [cut, short, not_text, twice] {
        let fault = decode(&with_extra(extra)).unwrap_err();
        assert!(matches!(fault, FrameFault::BadField { .. }), "{fault}");
    }
}

#[test]
fn error_text_is_cut_between_characters() {
    let mut out = BytesMut::new();
    let text = "ä".repeat(ERROR_TEXT_BYTES_MAX);
    let fields = ResponseFields::default();
    encode_error(&mut out, ID, 0x42, Status::Unsupported, &fields, &text);
    let response = decode(&out).unwrap();
    assert_eq!(response.opcode, Opcode::UNKNOWN);
    assert_eq!(response.value.len(), ERROR_TEXT_BYTES_MAX);
    assert!(std::str::from_utf8(response.value).is_ok());
}

#[test]
fn every_status_byte_is_a_status_or_none() {
    let known: Vec<u8> = Status::ALL.iter().map(|status| status.to_byte()).collect();
    for byte in 0..=u8::MAX {
        match Status::from_byte(byte) {
            Some(status) => assert_eq!(status.to_byte(), byte),
            None => assert!(!known.contains(&byte)),
        }
    }
    assert_eq!(Status::Overloaded.executed(), Executed::No);
    assert_eq!(Status::OutcomeUnknown.executed(), Executed::Unknown);
    assert_eq!(Status::NotFound.executed(), Executed::Yes);
}
