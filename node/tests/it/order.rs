//! The order that one connection may rely on.

use bytes::BytesMut;
use kelp_wire::{
    DecodeResponse, FrameLimits, Hello, ReadOptions, Request, RequestId, Status, WriteOptions,
    decode_response, encode_request,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::cluster::TestCluster;

/// Requests in one pipeline; enough to span several entries.
const PAIRS: u32 = 200;

fn put(key: &'static [u8], value: &[u8], id: u32, out: &mut BytesMut) {
    let request = Request::Put {
        database: 0,
        key,
        value,
        options: WriteOptions::default(),
    };
    encode_request(out, RequestId::new(id), &request).expect("a valid request");
}

fn get(key: &'static [u8], id: u32, out: &mut BytesMut) {
    let request = Request::Get {
        database: 0,
        key,
        options: ReadOptions::default(),
    };
    encode_request(out, RequestId::new(id), &request).expect("a valid request");
}

/// Sends all of `requests` at once and returns the replies by id.
#[expect(
    clippy::disallowed_methods,
    reason = "a raw socket, to send what a client library would not"
)]
async fn pipeline(address: &str, requests: &[u8], count: u32) -> Vec<(Status, Vec<u8>)> {
    let mut stream = TcpStream::connect(address).await.expect("the port is open");
    stream.write_all(requests).await.expect("the node reads");
    let mut replies = vec![None; usize::try_from(count).expect("small")];
    let mut input = BytesMut::new();
    while replies.iter().any(Option::is_none) {
        match decode_response(&input, &FrameLimits::FULL).expect("a sound frame") {
            DecodeResponse::Incomplete { .. } => {
                assert_ne!(
                    stream.read_buf(&mut input).await.expect("readable"),
                    0,
                    "closed early"
                );
            }
            DecodeResponse::Frame { consumed, response } => {
                let at = usize::try_from(response.id.get()).expect("small");
                assert!(replies[at].is_none(), "request {at} was answered twice");
                replies[at] = Some((response.status, response.value.to_vec()));
                let _ = input.split_to(consumed);
            }
        }
    }
    replies.into_iter().flatten().collect()
}

#[test]
fn a_read_sees_every_earlier_and_no_later_write_of_its_connection() {
    let cluster = TestCluster::start(3);
    let leader = cluster.wait_for_leader();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
    for at in [leader, (leader + 1) % 3] {
        let mut requests = BytesMut::new();
        encode_request(
            &mut requests,
            RequestId::new(0),
            &Request::Hello(Hello::default()),
        )
        .expect("valid");
        for number in 0..PAIRS {
            put(
                b"counter",
                number.to_string().as_bytes(),
                1 + 2 * number,
                &mut requests,
            );
            get(b"counter", 2 + 2 * number, &mut requests);
        }
        let address = cluster.nodes[at].member.client.clone();
        let replies = runtime.block_on(pipeline(&address, &requests, 1 + 2 * PAIRS));
        for number in 0..PAIRS {
            let (status, value) = &replies[usize::try_from(2 + 2 * number).expect("small")];
            assert_eq!(*status, Status::Ok);
            assert_eq!(
                value,
                number.to_string().as_bytes(),
                "read {number} through node {at}"
            );
        }
    }
}

#[test]
fn a_write_behind_a_read_that_asks_the_quorum_stays_invisible_to_it() {
    let cluster = TestCluster::start(3);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
    for at in 0..3 {
        let mut requests = BytesMut::new();
        encode_request(
            &mut requests,
            RequestId::new(0),
            &Request::Hello(Hello::default()),
        )
        .expect("valid");
        get(b"fresh", 1, &mut requests);
        put(b"fresh", b"x", 2, &mut requests);
        get(b"fresh", 3, &mut requests);
        let delete = Request::Delete {
            database: 0,
            key: b"fresh",
            options: WriteOptions::default(),
        };
        encode_request(&mut requests, RequestId::new(4), &delete).expect("valid");
        get(b"fresh", 5, &mut requests);
        let replies = runtime.block_on(pipeline(&cluster.nodes[at].member.client, &requests, 6));
        let statuses: Vec<Status> = replies.iter().map(|(status, _)| *status).collect();
        let expected = [
            Status::Ok,
            Status::NotFound,
            Status::Ok,
            Status::Ok,
            Status::Ok,
            Status::NotFound,
        ];
        assert_eq!(statuses, expected, "through node {at}");
    }
}
