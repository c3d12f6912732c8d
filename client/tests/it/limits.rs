//! What a connection keeps in flight at most, and who waits for room.

use std::time::Duration;

use futures_util::future::join_all;
use kelp_client::{CallError, ConnectionOptions};
use kelp_wire::Executed;

use crate::network::{connected, get, put, soon, within};

fn at_most(requests_max: usize) -> ConnectionOptions {
    ConnectionOptions {
        requests_max,
        ..ConnectionOptions::default()
    }
}

#[tokio::test(start_paused = true)]
async fn full_connection_starts_nothing() {
    let (connection, _peer, _network) = connected(&at_most(2)).await;
    let start = || connection.try_start(&get(b"k"), soon()).unwrap();
    let _held = (start().unwrap(), start().unwrap());
    assert!(start().is_none());
}

#[tokio::test(start_paused = true)]
async fn bytes_in_flight_are_bounded_too() {
    let options = ConnectionOptions {
        request_bytes_max: 1_000,
        ..ConnectionOptions::default()
    };
    let (connection, _peer, _network) = connected(&options).await;
    let start = || connection.try_start(&put(b"k", &[0; 600]), soon()).unwrap();
    let _held = (start().unwrap(), start().unwrap());
    assert!(start().is_none());
}

#[tokio::test(start_paused = true)]
async fn callers_beyond_the_limit_take_turns() {
    let (connection, mut peer, _network) = connected(&at_most(2)).await;
    let keys: Vec<[u8; 1]> = (0..20).map(|number| [number]).collect();
    let calls = join_all(keys.iter().map(|key| {
        let connection = &connection;
        async move { connection.call(&get(key), soon()).await }
    }));
    let node = async {
        for _ in 0..keys.len() {
            let asked = peer.next().await;
            peer.answer(&asked, &asked.key).await;
        }
    };
    let (replies, ()) = tokio::join!(calls, node);
    for (key, reply) in keys.iter().zip(replies) {
        assert_eq!(reply.unwrap().value, &key[..]);
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_for_room_ends_at_the_deadline() {
    let (connection, _peer, _network) = connected(&at_most(1)).await;
    let _held = connection.try_start(&get(b"k"), soon()).unwrap();
    let deadline = within(Duration::from_millis(50));
    let late = connection.call(&put(b"k", b""), deadline).await;
    let executed = Executed::No;
    assert_eq!(late, Err(CallError::TimedOut { executed }));
}

#[tokio::test(start_paused = true)]
async fn waiting_for_room_ends_with_the_connection() {
    let (connection, peer, _network) = connected(&at_most(1)).await;
    let _held = connection.try_start(&get(b"k"), soon()).unwrap();
    let request = put(b"k", b"");
    let (waiting, ()) = tokio::join!(connection.call(&request, soon()), async { drop(peer) });
    let error = waiting.unwrap_err();
    assert!(matches!(error, CallError::Lost { .. }), "{error}");
    assert_eq!(error.executed(), Executed::No);
}

#[tokio::test(start_paused = true)]
async fn abandoned_request_keeps_its_place_until_answered() {
    let (connection, mut peer, _network) = connected(&at_most(1)).await;
    drop(connection.try_start(&get(b"gone"), soon()).unwrap());
    assert!(
        connection
            .try_start(&get(b"next"), soon())
            .unwrap()
            .is_none()
    );
    let asked = peer.next().await;
    let node = async {
        peer.answer(&asked, b"too late").await;
        let next = peer.next().await;
        peer.answer(&next, b"in time").await;
    };
    let request = get(b"next");
    let (reply, ()) = tokio::join!(connection.call(&request, soon()), node);
    assert_eq!(reply.unwrap().value, &b"in time"[..]);
}

#[tokio::test(start_paused = true)]
async fn dropped_waiter_passes_its_turn_on() {
    let (connection, mut peer, _network) = connected(&at_most(1)).await;
    let held = connection
        .try_start(&get(b"first"), soon())
        .unwrap()
        .unwrap();
    let (second, third) = (get(b"second"), get(b"third"));
    let mut impatient = Box::pin(connection.call(&second, soon()));
    let mut patient = Box::pin(connection.call(&third, soon()));
    assert!(futures_util::poll!(&mut impatient).is_pending());
    assert!(futures_util::poll!(&mut patient).is_pending());
    let asked = peer.next().await;
    peer.answer(&asked, b"").await;
    held.await.unwrap();
    drop(impatient);
    let node = async {
        let asked = peer.next().await;
        assert_eq!(asked.key, b"third");
        peer.answer(&asked, b"").await;
    };
    let (reply, ()) = tokio::join!(patient, node);
    reply.unwrap();
}

#[tokio::test(start_paused = true)]
async fn refused_requests_take_no_place() {
    let (connection, _peer, _network) = connected(&at_most(1)).await;
    let refused = connection.call(&get(b""), soon()).await;
    assert!(matches!(refused, Err(CallError::Invalid(_))));
    assert!(connection.try_start(&get(b"k"), soon()).unwrap().is_some());
}
