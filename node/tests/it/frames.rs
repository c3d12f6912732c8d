//! Malformed frames: one error that names the fault, then the end; the node lives.

use bytes::BytesMut;
use kelp_wire::{
    DecodeResponse, FrameLimits, Hello, Request, RequestId, Status, decode_response, encode_request,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::cluster::TestCluster;

fn hello() -> BytesMut {
    let mut out = BytesMut::new();
    encode_request(
        &mut out,
        RequestId::new(1),
        &Request::Hello(Hello::default()),
    )
    .expect("valid");
    out
}

/// Sends the bytes and returns all replies until the node closes.
#[expect(
    clippy::disallowed_methods,
    reason = "a raw socket, to send what a client library would not"
)]
async fn until_close(address: &str, bytes: &[u8]) -> Vec<(Status, String)> {
    let mut stream = TcpStream::connect(address).await.expect("the port is open");
    stream.write_all(bytes).await.expect("the node reads");
    let mut input = BytesMut::new();
    while stream.read_buf(&mut input).await.expect("an orderly close") > 0 {}
    let mut replies = Vec::new();
    while !input.is_empty() {
        match decode_response(&input, &FrameLimits::FULL).expect("the node sends sound frames") {
            DecodeResponse::Incomplete { .. } => panic!("half a frame at the end"),
            DecodeResponse::Frame { consumed, response } => {
                replies.push((
                    response.status,
                    String::from_utf8_lossy(response.value).into_owned(),
                ));
                let _ = input.split_to(consumed);
            }
        }
    }
    replies
}

fn frame(opcode: u8, flags: u16, key: &[u8], value_length: u32) -> BytesMut {
    let mut bytes = hello();
    bytes.extend_from_slice(&[0xA1, opcode]);
    bytes.extend_from_slice(&flags.to_be_bytes());
    bytes.extend_from_slice(&7_u32.to_be_bytes());
    bytes.extend_from_slice(&u16::try_from(key.len()).expect("short").to_be_bytes());
    bytes.extend_from_slice(&0_u16.to_be_bytes());
    bytes.extend_from_slice(&value_length.to_be_bytes());
    bytes.extend_from_slice(key);
    bytes
}

#[test]
fn each_malformed_stream_gets_one_error_and_is_closed_and_the_node_lives() {
    let cluster = TestCluster::start(1);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
    let address = cluster.nodes[0].member.client.clone();
    let mut wrong_version = BytesMut::new();
    let newer = Hello {
        version_min: 2,
        version_max: 9,
        ..Hello::default()
    };
    encode_request(
        &mut wrong_version,
        RequestId::new(1),
        &Request::Hello(newer),
    )
    .expect("valid");
    let mut bad_magic = hello();
    bad_magic.extend_from_slice(b"GET / HTTP/1.1\r\n\r\n");
    let mut no_hello = BytesMut::new();
    encode_request(
        &mut no_hello,
        RequestId::new(1),
        &Request::Echo { value: b"hi" },
    )
    .expect("valid");
    let cases: [(&str, BytesMut, Status, &str); 6] = [
        ("bad magic", bad_magic, Status::BadRequest, "magic"),
        (
            "wrong version",
            wrong_version,
            Status::Unsupported,
            "version",
        ),
        ("no hello", no_hello, Status::BadRequest, "hello"),
        (
            "unknown flags",
            frame(0x03, 0x8000, b"k", 0),
            Status::BadRequest,
            "flags",
        ),
        (
            "length over the limit",
            frame(0x02, 0, b"k", u32::MAX),
            Status::TooLarge,
            "limit",
        ),
        (
            "cut short and slow",
            frame(0x02, 0, b"k", 10),
            Status::BadRequest,
            "complete",
        ),
    ];
    for (name, bytes, status, word) in cases {
        let replies = runtime.block_on(until_close(&address, &bytes));
        let errors: Vec<_> = replies
            .iter()
            .filter(|(status, _)| *status != Status::Ok)
            .collect();
        assert_eq!(errors.len(), 1, "{name}: {replies:?}");
        assert_eq!(errors[0].0, status, "{name}: {replies:?}");
        assert!(errors[0].1.contains(word), "{name}: {replies:?}");
    }
    runtime.block_on(async {
        cluster
            .client(0)
            .put("k", "v")
            .await
            .expect("the node lives");
    });
}

#[test]
fn a_bad_request_in_a_sound_frame_leaves_the_connection_open() {
    let cluster = TestCluster::start(1);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
    let mut bytes = frame(0x03, 0, b"", 0);
    bytes.extend_from_slice(&frame(0x66, 0, b"k", 0)[hello().len()..]);
    bytes.extend_from_slice(&frame(0x03, 0, b"k", 0)[hello().len()..]);
    bytes.extend_from_slice(b"the end");
    let replies = runtime.block_on(until_close(&cluster.nodes[0].member.client, &bytes));
    let statuses: std::collections::BTreeSet<u8> =
        replies.iter().map(|(status, _)| status.to_byte()).collect();
    let expected = [
        Status::Ok,
        Status::NotFound,
        Status::BadRequest,
        Status::Unsupported,
    ]
    .map(Status::to_byte);
    assert_eq!(statuses, expected.into_iter().collect(), "{replies:?}");
}
