use std::io::IoSlice;

use bytes::BytesMut;

use super::super::frame::put_header;
use super::super::output::{Output, SLICES_MAX};
use super::super::{FRAME_BYTES_MAX, FrameError, Refusal, RefusalCode, Welcome, decode_frame};
use super::*;

/// One of each, as in docs/formats/peer.md.
const HELLO: &[u8] = include_bytes!("../../../testdata/v1/peer_hello.bin");
const WELCOME: &[u8] = include_bytes!("../../../testdata/v1/peer_welcome.bin");
const REFUSAL: &[u8] = include_bytes!("../../../testdata/v1/peer_refusal.bin");
const REQUEST: &[u8] = include_bytes!("../../../testdata/v1/peer_request.bin");

/// What one vectored write would take.
fn front(output: &Output) -> Vec<u8> {
    let mut slices = [IoSlice::new(&[]); SLICES_MAX];
    let filled = output.slices(&mut slices);
    slices[..filled]
        .iter()
        .flat_map(|slice| slice.to_vec())
        .collect()
}

fn counting_cluster() -> ClusterId {
    ClusterId::new(std::array::from_fn(|index| {
        u8::try_from(index + 1).unwrap()
    }))
}

#[test]
fn hello_has_the_documented_bytes() {
    let hello = Hello {
        class: PeerClass::Forward,
        cluster: counting_cluster(),
        boot: Boot::new(255),
        ..hello(2, 1)
    };
    let mut bytes = BytesMut::new();
    hello.encode(&mut bytes);
    assert_eq!(bytes, HELLO);
    bytes.extend_from_slice(b"of a later version");
    assert_eq!(Hello::decode(&bytes), Ok(hello));
}

#[test]
fn welcome_has_the_documented_bytes() {
    let welcome = Welcome {
        version: 1,
        cluster: counting_cluster(),
        node: node_id(1),
        boot: Boot::new(7),
        directory: directory(1),
    };
    let mut bytes = BytesMut::new();
    welcome.encode(&mut bytes);
    assert_eq!(bytes, WELCOME);
    assert_eq!(Welcome::decode(&bytes), Ok(welcome));
}

#[test]
fn refusal_has_the_documented_bytes() {
    let refusal = Refusal {
        code: RefusalCode::Emptied,
        text: "no".to_owned(),
    };
    let mut bytes = BytesMut::new();
    refusal.encode(&mut bytes);
    assert_eq!(bytes, REFUSAL);
    assert_eq!(Refusal::decode(&bytes), refusal);
}

#[test]
fn frame_has_the_documented_bytes() {
    let mut output = Output::default();
    output.push(FrameKind::Request, 258, &Bytes::from_static(b"abc"));
    assert_eq!(front(&output), REQUEST);
    let mut input = BytesMut::from(&front(&output)[..]);
    let frame = decode_frame(&mut input, FRAME_BYTES_MAX).unwrap().unwrap();
    assert_eq!((frame.kind, frame.id), (FrameKind::Request, 258));
    assert_eq!(frame.payload, "abc");
    assert!(input.is_empty());
}

#[test]
fn output_keeps_the_order_of_small_and_large_payloads() {
    let mut output = Output::default();
    let mut expected = BytesMut::new();
    for (id, bytes) in [(1, 10), (2, 70_000), (3, 0), (4, 20_000), (5, 3)] {
        let payload = Bytes::from(vec![u8::try_from(id).unwrap(); bytes]);
        output.push(FrameKind::Reply, id, &payload);
        put_header(&mut expected, FrameKind::Reply, id, bytes);
        expected.extend_from_slice(&payload);
    }
    assert_eq!(output.len(), expected.len());
    let mut written = Vec::new();
    while !output.is_empty() {
        let chunk = front(&output);
        let count = chunk.len().min(7777);
        written.extend_from_slice(&chunk[..count]);
        output.advance(count);
    }
    assert_eq!(written, expected);
}

#[tokio::test]
async fn kept_frames_share_their_blocks() {
    let (near, far) = tokio::io::duplex(1024);
    let (mut writer, mut reader) = (FramePipe::new(near), FramePipe::new(far));
    let payload = Bytes::from_static(&[1; 100]);
    let mut kept = Vec::new();
    for _ in 0..300 {
        writer.write_frame(FrameKind::Ping, &payload).await.unwrap();
        kept.push(reader.read_frame().await.unwrap().payload);
    }
    let addresses = kept.iter().map(|payload| payload.as_ptr().addr());
    let lowest = addresses.clone().min().unwrap();
    let span = addresses.max().unwrap() - lowest;
    assert!(span < 64 * 1024, "300 frames lie {span} bytes apart");
}

#[test]
fn partial_frame_waits_for_the_rest() {
    let mut whole = BytesMut::new();
    put_header(&mut whole, FrameKind::Reply, 9, 2);
    whole.extend_from_slice(b"ok");
    for end in 0..whole.len() {
        let mut part = BytesMut::from(&whole[..end]);
        assert_eq!(
            decode_frame(&mut part, FRAME_BYTES_MAX),
            Ok(None),
            "{end} bytes"
        );
        assert_eq!(part.len(), end);
    }
}

#[test]
fn length_is_checked_before_the_body_arrives() {
    let decode = |length: u32| decode_frame(&mut BytesMut::from(&length.to_be_bytes()[..]), 100);
    assert_eq!(decode(8), Err(FrameError::TooShort { length: 8 }));
    assert_eq!(decode(0), Err(FrameError::TooShort { length: 0 }));
    assert_eq!(decode(100), Ok(None));
    let (length, max) = (101, 100);
    assert_eq!(decode(101), Err(FrameError::TooLong { length, max }));
    let length = usize::try_from(u32::MAX).unwrap();
    assert_eq!(decode(u32::MAX), Err(FrameError::TooLong { length, max }));
}

#[test]
fn unknown_kinds_and_classes_are_refused() {
    let mut frame = BytesMut::from(&[0, 0, 0, 9, 99, 0, 0, 0, 0, 0, 0, 0, 0][..]);
    let decoded = decode_frame(&mut frame, FRAME_BYTES_MAX);
    assert_eq!(decoded, Err(FrameError::UnknownKind(99)));
    let mut bytes = BytesMut::new();
    hello(1, 2).encode(&mut bytes);
    bytes[6] = 9;
    assert_eq!(Hello::decode(&bytes), Err(FrameError::UnknownClass(9)));
    bytes[0] = b'X';
    assert_eq!(Hello::decode(&bytes), Err(FrameError::BadMagic));
}

#[test]
fn refusal_text_is_cut_and_cleaned() {
    let mut bytes = BytesMut::new();
    let (code, text) = (RefusalCode::Other, "ä".repeat(400));
    Refusal { code, text }.encode(&mut bytes);
    assert_eq!(bytes.len(), 1 + 512);
    let hostile = Refusal::decode(b"\x09no\n\x1b[31mway");
    assert_eq!(hostile.text, "no  [31mway");
    assert_eq!(hostile.code, RefusalCode::Other, "of a later version");
}

proptest::proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
        let mut input = BytesMut::from(&bytes[..]);
        while let Ok(Some(_)) = decode_frame(&mut input, FRAME_BYTES_MAX) {}
        let _ = Hello::decode(&bytes);
        let _ = Welcome::decode(&bytes);
        let _ = Refusal::decode(&bytes);
    }
}
