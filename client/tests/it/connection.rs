//! Pipelining, order, and the end of a connection.

use std::time::Duration;

use futures_util::future::join_all;
use kelp_client::{CallError, CloseReason, ConnectionOptions};
use kelp_wire::{Executed, Response, ResponseHeader, Status};

use crate::network::{connected, connected_with_buffer, get, put, soon, within};

fn lost(executed: Executed) -> CallError {
    CallError::Lost {
        reason: CloseReason::ClosedByNode,
        executed,
    }
}

#[tokio::test(start_paused = true)]
async fn replies_out_of_order_reach_their_callers() {
    let (connection, mut peer, _network) = connected(&ConnectionOptions::default()).await;
    let keys: Vec<String> = (0..100).map(|number| format!("key{number}")).collect();
    let calls = join_all(
        keys.iter()
            .map(|key| async { connection.call(&get(key.as_bytes()), soon()).await }),
    );
    let node = async {
        let mut asked = peer.next_many(keys.len()).await;
        asked.reverse();
        for one in asked {
            peer.answer(&one, &one.key).await;
        }
    };
    let (replies, ()) = tokio::join!(calls, node);
    for (key, reply) in keys.iter().zip(replies) {
        assert_eq!(reply.unwrap().value, key.as_bytes());
    }
}

#[tokio::test(start_paused = true)]
async fn requests_leave_in_the_order_they_were_started() {
    let (connection, mut peer, _network) = connected(&ConnectionOptions::default()).await;
    let mut pending = Vec::new();
    for key in [b"a", b"b", b"c"] {
        pending.extend(connection.try_start(&put(key, b""), soon()).unwrap());
    }
    let asked = peer.next_many(3).await;
    let keys: Vec<_> = asked.iter().map(|one| one.key.as_slice()).collect();
    assert_eq!(keys, [b"a", b"b", b"c"]);
    for one in &asked {
        peer.answer(one, b"").await;
    }
    for reply in pending {
        assert_eq!(reply.await.unwrap().status, Status::Ok);
    }
}

#[tokio::test(start_paused = true)]
async fn requests_of_ready_tasks_share_one_write() {
    let (connection, mut peer, network) = connected(&ConnectionOptions::default()).await;
    let tasks: Vec<_> = (0..32_u8)
        .map(|number| {
            let connection = connection.clone();
            tokio::spawn(async move {
                for _ in 0..10 {
                    connection.call(&get(&[number]), soon()).await.unwrap();
                }
            })
        })
        .collect();
    let before = network.writes();
    for _ in 0..10 {
        let asked = peer.next_many(32).await;
        let mut all = bytes::BytesMut::new();
        for one in asked {
            let response = Response {
                fields: kelp_wire::ResponseFields::with_revision(kelp_wire::Revision::new(1)),
                ..Response::new(one.id, one.opcode, Status::Ok)
            };
            kelp_wire::encode_response(&mut all, &response);
        }
        peer.send_bytes(&all).await;
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(network.writes() - before, 10);
}

#[tokio::test(start_paused = true)]
async fn death_in_mid_flight_is_unknown_for_writes_only() {
    let (connection, mut peer, _network) = connected(&ConnectionOptions::default()).await;
    let (write, read) = (put(b"k", b"v"), get(b"k"));
    let node = async {
        peer.next_many(2).await;
        drop(peer);
    };
    let (write, read, ()) = tokio::join!(
        connection.call(&write, soon()),
        connection.call(&read, soon()),
        node
    );
    assert_eq!(write, Err(lost(Executed::Unknown)));
    assert_eq!(read, Err(lost(Executed::No)));
    assert_eq!(connection.closed(), Some(CloseReason::ClosedByNode));
    let late = connection.call(&put(b"k", b"v"), soon()).await;
    assert_eq!(late, Err(lost(Executed::No)));
}

#[tokio::test(start_paused = true)]
async fn write_that_was_not_handed_over_whole_is_not_executed() {
    let (connection, mut peer, _network) =
        connected_with_buffer(&ConnectionOptions::default(), 100).await;
    let large = [7; 1_000];
    let (first, second) = (put(b"first", b"v"), put(b"second", &large));
    let node = async {
        assert_eq!(peer.next().await.key, b"first");
        drop(peer);
    };
    let (first, second, ()) = tokio::join!(
        connection.call(&first, soon()),
        connection.call(&second, soon()),
        node
    );
    assert_eq!(first.unwrap_err().executed(), Executed::Unknown);
    assert_eq!(second.unwrap_err().executed(), Executed::No);
}

#[tokio::test(start_paused = true)]
async fn late_reply_reaches_nobody_else() {
    let (connection, mut peer, _network) = connected(&ConnectionOptions::default()).await;
    let deadline = within(Duration::from_millis(100));
    let executed = Executed::Unknown;
    let slow = connection.call(&put(b"slow", b""), deadline).await;
    assert_eq!(slow, Err(CallError::TimedOut { executed }));
    assert_eq!(tokio::time::Instant::now(), deadline);

    let slow = peer.next().await;
    let node = async {
        let next = peer.next().await;
        assert_ne!(next.id, slow.id);
        peer.answer(&slow, b"late").await;
        peer.answer(&next, b"right").await;
        let third = peer.next().await;
        assert_eq!(third.id, next.id, "answered ids are used again");
        peer.answer(&third, b"").await;
    };
    let calls = async {
        let reply = connection.call(&get(b"next"), soon()).await.unwrap();
        assert_eq!(reply.value, &b"right"[..]);
        connection.call(&get(b"third"), soon()).await.unwrap();
    };
    tokio::join!(calls, node);
}

#[tokio::test(start_paused = true)]
async fn earlier_deadline_of_a_later_request_is_kept() {
    let (connection, mut peer, _network) = connected(&ConnectionOptions::default()).await;
    let long = connection.try_start(&get(b"long"), soon()).unwrap();
    peer.next().await;
    let early = within(Duration::from_millis(10));
    let short = connection.call(&get(b"short"), early).await;
    let executed = Executed::No;
    assert_eq!(short, Err(CallError::TimedOut { executed }));
    assert_eq!(tokio::time::Instant::now(), early);
    drop(long);
}

#[tokio::test(start_paused = true)]
async fn last_handle_closes_the_connection() {
    let (connection, mut peer, _network) = connected(&ConnectionOptions::default()).await;
    let twin = connection.clone();
    drop(connection);
    let pending = twin.try_start(&get(b"k"), soon()).unwrap().unwrap();
    drop(twin);
    let asked = peer.next().await;
    peer.answer(&asked, b"still answered").await;
    assert_eq!(pending.await.unwrap().value, &b"still answered"[..]);
    assert_eq!(peer.next_or_end().await, None);
}

#[tokio::test(start_paused = true)]
async fn frames_of_one_reply_are_joined() {
    let (connection, mut peer, _network) = connected(&ConnectionOptions::default()).await;
    let node = async {
        let asked = peer.next().await;
        for (value, more) in [(&b"one "[..], true), (b"two ", true), (b"three", false)] {
            let response = Response {
                more,
                value,
                ..Response::new(asked.id, asked.opcode, Status::Ok)
            };
            peer.send(&response).await;
        }
    };
    let request = get(b"k");
    let (reply, ()) = tokio::join!(connection.call(&request, soon()), node);
    assert_eq!(reply.unwrap().value, &b"one two three"[..]);
}

#[tokio::test(start_paused = true)]
async fn large_values_come_back_whole() {
    let (connection, peer, _network) = connected(&ConnectionOptions::default()).await;
    let node = tokio::spawn(async move {
        let mut peer = peer;
        let asked = peer.next().await;
        let value: Vec<u8> = (0..3_000_000_u32).map(|n| n.to_le_bytes()[0]).collect();
        peer.answer(&asked, &value).await;
        let asked = peer.next().await;
        peer.answer(&asked, b"small").await;
    });
    let reply = connection.call(&get(b"k"), soon()).await.unwrap();
    assert_eq!(reply.value.len(), 3_000_000);
    assert!(
        reply
            .value
            .iter()
            .zip(0_u32..)
            .all(|(byte, n)| *byte == n.to_le_bytes()[0])
    );
    let reply = connection.call(&get(b"k"), soon()).await.unwrap();
    assert_eq!(reply.value, &b"small"[..]);
    node.await.unwrap();
}

/// Sends `bytes` instead of a reply, and expects the end of the connection for that reason.
async fn check_breaks(bytes: Vec<u8>, expected: &str) {
    let (connection, mut peer, _network) = connected(&ConnectionOptions::default()).await;
    let node = async {
        peer.next().await;
        peer.send_bytes(&bytes).await;
        assert_eq!(peer.next_or_end().await, None);
    };
    let request = put(b"k", b"v");
    let (result, ()) = tokio::join!(connection.call(&request, soon()), node);
    let error = result.expect_err("the connection is broken");
    assert_eq!(error.executed(), Executed::Unknown);
    assert!(error.to_string().contains(expected), "{error}");
}

fn header(change: impl FnOnce(&mut ResponseHeader)) -> Vec<u8> {
    let mut header = ResponseHeader {
        magic: kelp_wire::MAGIC,
        opcode: 0x82,
        status: 0,
        flags: 0,
        id: kelp_wire::RequestId::new(1),
        key_bytes: 0,
        extra_bytes: 0,
        value_bytes: 0,
    };
    change(&mut header);
    header.encode().to_vec()
}

#[tokio::test(start_paused = true)]
async fn broken_frames_end_the_connection() {
    check_breaks(b"HTTP/1.1 400".to_vec(), "magic is 0x48").await;
    check_breaks(header(|h| h.value_bytes = u32::MAX), "over the limit").await;
    check_breaks(header(|h| h.status = 77), "unknown status 77").await;
    check_breaks(header(|h| h.flags = 2), "unknown flags").await;
}

#[tokio::test(start_paused = true)]
async fn replies_to_nothing_end_the_connection() {
    let id = kelp_wire::RequestId::new;
    check_breaks(header(|h| h.id = id(2)), "fits no request").await;
    check_breaks(header(|h| h.id = id(70_000)), "fits no request").await;
    check_breaks(header(|h| h.opcode = 0x83), "fits no request").await;
}

#[tokio::test(start_paused = true)]
async fn error_frame_about_the_stream_is_told_in_its_words() {
    let mut out = bytes::BytesMut::new();
    kelp_wire::decode_request(b"x", &kelp_wire::FrameLimits::FULL)
        .unwrap_err()
        .encode(&mut out);
    check_breaks(out.to_vec(), "magic is 0x78").await;
}

#[tokio::test(start_paused = true)]
async fn endless_reply_ends_the_connection() {
    let (connection, mut peer, _network) = connected(&ConnectionOptions::default()).await;
    let value = vec![0; 8 * 1024 * 1024];
    let node = async {
        let asked = peer.next().await;
        for _ in 0..5 {
            let response = Response {
                more: true,
                value: &value,
                ..Response::new(asked.id, asked.opcode, Status::Ok)
            };
            peer.send(&response).await;
        }
    };
    let request = get(b"k");
    let (result, ()) = tokio::join!(connection.call(&request, soon()), node);
    assert!(matches!(result, Err(CallError::Lost { .. })), "{result:?}");
}
