//! Malformed frames: one error that names the fault, then the end; the node lives.

use bytes::BytesMut;
use kelp_wire::{Hello, Request, Status};

use crate::cluster::TestCluster;
use crate::raw::{RawConnection, RawReply, get, hello, request};

/// Sends the bytes and returns all replies until the node closes.
async fn until_close(address: &str, bytes: &[u8]) -> Vec<RawReply> {
    let mut connection = RawConnection::open(address).await;
    connection.send(bytes).await;
    connection.rest().await
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
    let newer = Hello {
        version_min: 2,
        version_max: 9,
        ..Hello::default()
    };
    let wrong_version = request(1, &Request::Hello(newer));
    let mut bad_magic = hello();
    bad_magic.extend_from_slice(b"GET / HTTP/1.1\r\n\r\n");
    let no_hello = request(1, &Request::Echo { value: b"hi" });
    let cases: [(&str, BytesMut, Status, &str); 6] = [
        ("bad magic", bad_magic, Status::BadRequest, "magic"),
        (
            "wrong version",
            wrong_version,
            Status::Unsupported,
            "version",
        ),
        ("no hello", no_hello, Status::Refused, "hello"),
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
            .filter(|reply| reply.status != Status::Ok)
            .collect();
        assert_eq!(errors.len(), 1, "{name}: {replies:?}");
        assert_eq!(errors[0].status, status, "{name}: {replies:?}");
        assert!(errors[0].text().contains(word), "{name}: {replies:?}");
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
        replies.iter().map(|reply| reply.status.to_byte()).collect();
    let expected = [
        Status::Ok,
        Status::NotFound,
        Status::BadRequest,
        Status::Unsupported,
    ]
    .map(Status::to_byte);
    assert_eq!(statuses, expected.into_iter().collect(), "{replies:?}");
}

#[test]
fn requests_before_a_half_close_are_answered() {
    let cluster = TestCluster::start(1);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
    let put = Request::Put {
        database: 0,
        key: b"k",
        value: b"v",
        options: kelp_wire::WriteOptions::default(),
    };
    let mut bytes = hello();
    bytes.extend_from_slice(&request(2, &put));
    bytes.extend_from_slice(&get(3, b"k"));
    let whole = bytes.clone();
    bytes.extend_from_slice(&get(4, b"k")[..9]);
    let cases = [(whole, vec![]), (bytes, vec![Status::BadRequest])];
    for (bytes, errors_expected) in cases {
        let replies = runtime.block_on(async {
            let mut connection = RawConnection::open(&cluster.nodes[0].member.client).await;
            connection.send(&bytes).await;
            connection.end_sending().await;
            connection.rest().await
        });
        let (answers, errors): (Vec<_>, Vec<_>) =
            replies.into_iter().partition(|reply| reply.id != 0);
        let mut answered: Vec<_> = answers.iter().map(|reply| reply.id).collect();
        answered.sort_unstable();
        assert_eq!(answered, [1, 2, 3], "{answers:?}");
        assert!(answers.iter().all(|reply| reply.status == Status::Ok));
        let statuses: Vec<_> = errors.iter().map(|error| error.status).collect();
        assert_eq!(statuses, errors_expected);
        for error in errors {
            assert!(error.text().contains("ended inside a frame"), "{error:?}");
        }
    }
}
