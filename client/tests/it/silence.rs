//! Nodes that are connected and yet not there.

use std::time::Duration;

use kelp_client::{CallError, CloseReason, ConnectionOptions};
use kelp_wire::{Executed, Opcode};
use tokio::time::Instant;

use crate::network::{connected, connected_with_buffer, get, put, within};

fn patient() -> Instant {
    within(Duration::from_mins(1))
}

#[tokio::test(start_paused = true)]
async fn node_that_answers_no_ping_is_given_up() {
    let (connection, peer, _network) = connected(&ConnectionOptions::default()).await;
    tokio::time::advance(Duration::from_secs(100)).await;
    let start = Instant::now();
    let result = connection.call(&put(b"k", b"v"), patient()).await;
    let expected = CallError::Lost {
        reason: CloseReason::Silent,
        executed: Executed::Unknown,
    };
    assert_eq!(result, Err(expected));
    assert_eq!(start.elapsed(), Duration::from_secs(5));
    drop(peer);
}

#[tokio::test(start_paused = true)]
async fn slow_node_that_answers_pings_is_waited_for() {
    let (connection, mut peer, _network) = connected(&ConnectionOptions::default()).await;
    let node = async {
        let asked = peer.next().await;
        for _ in 0..20 {
            let ping = peer.next().await;
            assert_eq!(ping.opcode, Opcode::Echo);
            peer.answer(&ping, b"").await;
        }
        peer.answer(&asked, b"at last").await;
    };
    let request = get(b"k");
    let start = Instant::now();
    let (reply, ()) = tokio::join!(connection.call(&request, patient()), node);
    assert_eq!(reply.unwrap().value, &b"at last"[..]);
    assert_eq!(start.elapsed(), Duration::from_secs(20));
}

#[tokio::test(start_paused = true)]
async fn idle_connection_is_not_pinged() {
    let (connection, mut peer, _network) = connected(&ConnectionOptions::default()).await;
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(connection.closed(), None);
    drop(connection);
    assert_eq!(peer.next_or_end().await, None);
}

#[tokio::test(start_paused = true)]
async fn request_that_the_node_never_read_is_not_executed() {
    let (connection, peer, _network) =
        connected_with_buffer(&ConnectionOptions::default(), 100).await;
    let value = [7; 1_000];
    let deadline = within(Duration::from_millis(500));
    let result = connection.call(&put(b"k", &value), deadline).await;
    let executed = Executed::No;
    assert_eq!(result, Err(CallError::TimedOut { executed }));
    assert_eq!(connection.closed(), Some(CloseReason::Stalled));
    drop(peer);
}

#[tokio::test(start_paused = true)]
async fn slow_reader_is_not_silent_while_it_reads() {
    let (connection, peer, _network) =
        connected_with_buffer(&ConnectionOptions::default(), 100).await;
    let node = tokio::spawn(async move {
        let mut peer = peer;
        let mut taken = 0;
        while taken < 2_000 {
            tokio::time::sleep(Duration::from_secs(4)).await;
            taken += peer.take_some().await;
        }
        peer
    });
    let value = [7; 2_000];
    let deadline = within(Duration::from_secs(100));
    let result = connection.call(&put(b"k", &value), deadline).await;
    let error = result.unwrap_err();
    let executed = Executed::Unknown;
    assert_ne!(
        error,
        CallError::TimedOut { executed },
        "silent once it has read all"
    );
    assert_eq!(connection.closed(), Some(CloseReason::Silent));
    node.await.unwrap();
}
