//! Which failures a client heals by itself, and which it must not.

use std::time::Duration;

use kelp_client::{ClientError, Executed};
use kelp_wire::Status;
use tokio::time::Instant;

use crate::network::{Network, builder, client};

#[tokio::test(start_paused = true)]
async fn unreachable_endpoint_is_passed_over() {
    let network = Network::new();
    let mut b = network.node("b:1");
    let client = client(&network, &["a:1", "b:1"]);
    let node = async { b.accept().await.answer_with_keys().await };
    tokio::select! {
        record = client.get("k") => assert_eq!(record.unwrap().unwrap().value, "k"),
        () = node => panic!("the client left"),
    }
}

#[tokio::test(start_paused = true)]
async fn surely_unexecuted_write_goes_to_the_next_node() {
    for status in [Status::NoLeader, Status::Unavailable] {
        let network = Network::new();
        let (mut a, mut b) = (network.node("a:1"), network.node("b:1"));
        let client = client(&network, &["a:1", "b:1"]);
        let start = Instant::now();
        let nodes = async {
            let mut first = a.accept().await;
            let asked = first.next().await;
            first.refuse(&asked, status).await;
            let mut second = b.accept().await;
            let asked = second.next().await;
            second.answer(&asked, b"").await;
            (first, second)
        };
        let (written, _peers) = tokio::join!(client.put("k", "v"), nodes);
        written.unwrap();
        assert_eq!(
            start.elapsed(),
            Duration::ZERO,
            "the first round does not wait"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn overloaded_node_is_asked_again_when_it_said() {
    let network = Network::new();
    let (mut a, mut b) = (network.node("a:1"), network.node("b:1"));
    let client = client(&network, &["a:1", "b:1"]);
    let start = Instant::now();
    let node = async {
        let mut peer = a.accept().await;
        let asked = peer.next().await;
        let pause = Some(Duration::from_millis(100));
        peer.refuse_for(&asked, Status::Overloaded, pause).await;
        let asked = peer.next().await;
        peer.answer(&asked, b"").await;
        peer
    };
    let (written, _peer) = tokio::join!(client.put("k", "v"), node);
    written.unwrap();
    let waited = start.elapsed();
    assert!(waited >= Duration::from_millis(50) && waited <= Duration::from_millis(101));
    assert!(b.is_idle());
}

#[tokio::test(start_paused = true)]
async fn write_whose_outcome_is_unknown_is_never_repeated() {
    let network = Network::new();
    let (mut a, mut b) = (network.node("a:1"), network.node("b:1"));
    let client = client(&network, &["a:1", "b:1"]);
    let node = async {
        let mut peer = a.accept().await;
        peer.next().await;
        drop(peer);
    };
    let (written, ()) = tokio::join!(client.put("k", "v"), node);
    let error = written.unwrap_err();
    assert!(
        matches!(error, ClientError::OutcomeUnknown { .. }),
        "{error}"
    );
    assert_eq!(error.executed(), Executed::Unknown);
    assert!(b.is_idle() && a.is_idle());
}

#[tokio::test(start_paused = true)]
async fn read_is_repeated_after_a_lost_connection() {
    let network = Network::new();
    let (mut a, mut b) = (network.node("a:1"), network.node("b:1"));
    let client = client(&network, &["a:1", "b:1"]);
    let nodes = async {
        let mut peer = a.accept().await;
        peer.next().await;
        drop(peer);
        let mut peer = b.accept().await;
        let asked = peer.next().await;
        peer.answer(&asked, b"v").await;
        peer
    };
    let (record, _peer) = tokio::join!(client.get("k"), nodes);
    assert_eq!(record.unwrap().unwrap().value, "v");
}

#[tokio::test(start_paused = true)]
async fn slow_read_moves_on_after_its_attempt_and_the_node_is_left() {
    let network = Network::new();
    let (mut a, mut b) = (network.node("a:1"), network.node("b:1"));
    let client = client(&network, &["a:1", "b:1"]);
    let start = Instant::now();
    let nodes = async {
        let mut slow = a.accept().await;
        slow.next().await;
        let mut peer = b.accept().await;
        for _ in 0..2 {
            let asked = peer.next().await;
            peer.answer(&asked, b"v").await;
        }
        (slow, peer)
    };
    let calls = async {
        client.get("k").await.unwrap();
        assert_eq!(start.elapsed(), Duration::from_secs(2));
        client.get("k").await.unwrap();
    };
    tokio::join!(calls, nodes);
    assert_eq!(
        start.elapsed(),
        Duration::from_secs(2),
        "the slow node is not asked again"
    );
}

#[tokio::test(start_paused = true)]
async fn node_that_fell_silent_is_left_after_one_failed_write() {
    let network = Network::new();
    let (mut a, mut b) = (network.node("a:1"), network.node("b:1"));
    let client = client(&network, &["a:1", "b:1"]);
    let nodes = async {
        let mut silent = a.accept().await;
        silent.next().await;
        let mut peer = b.accept().await;
        let asked = peer.next().await;
        peer.answer(&asked, b"").await;
        (silent, peer)
    };
    let calls = async {
        let error = client.put("k", "v").await.unwrap_err();
        assert_eq!(error.executed(), Executed::Unknown);
        client.put("k", "v").await.unwrap();
    };
    tokio::join!(calls, nodes);
}

#[tokio::test(start_paused = true)]
async fn restarted_node_is_found_again() {
    let network = Network::new();
    let mut a = network.node("a:1");
    let client = client(&network, &["a:1"]);
    let node = async {
        for _ in 0..2 {
            let mut peer = a.accept().await;
            let asked = peer.next().await;
            peer.answer(&asked, b"").await;
        }
    };
    let calls = async {
        client.put("k", "v").await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        client.put("k", "v").await.unwrap();
    };
    tokio::join!(calls, node);
}

#[tokio::test(start_paused = true)]
async fn call_without_any_node_ends_by_its_deadline() {
    let network = Network::new();
    let client = client(&network, &["a:1", "b:1", "c:1"]);
    let start = Instant::now();
    let error = client.put("k", "v").await.unwrap_err();
    let elapsed = start.elapsed();
    assert!(elapsed <= Duration::from_secs(5) && elapsed > Duration::from_millis(4_500));
    let ClientError::Unavailable {
        attempts,
        reached: false,
        reason,
    } = &error
    else {
        panic!("{error}")
    };
    assert!(*attempts > 20 && *attempts < 100, "{attempts} attempts");
    assert!(reason.contains("cannot connect"), "{reason}");
    assert_eq!(error.executed(), Executed::No);
}

#[tokio::test(start_paused = true)]
async fn unknown_outcome_of_a_read_is_tried_again() {
    let network = Network::new();
    let mut a = network.node("a:1");
    let client = client(&network, &["a:1"]);
    let node = async {
        let mut peer = a.accept().await;
        let asked = peer.next().await;
        peer.refuse(&asked, Status::OutcomeUnknown).await;
        let mut peer = a.accept().await;
        let asked = peer.next().await;
        peer.answer(&asked, b"v").await;
        peer
    };
    let (record, _peer) = tokio::join!(client.get("k"), node);
    assert_eq!(record.unwrap().unwrap().value, "v");
}

#[tokio::test(start_paused = true)]
async fn wrong_cluster_is_a_lasting_refusal() {
    let network = Network::new();
    let mut a = network.node("a:1");
    let built = builder(&network, &["a:1"]).cluster(kelp_wire::ClusterId::new([1; 16]));
    let (client, _peer) = tokio::join!(built.connect(), a.accept());
    let error = client.unwrap_err();
    let ClientError::Refused { status, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(status, Status::WrongCluster);
}

#[tokio::test(start_paused = true)]
async fn many_callers_share_one_dial() {
    let network = Network::new();
    let mut a = network.node("a:1");
    let client = client(&network, &["a:1"]);
    let node = async {
        let peer = a.accept().await;
        tokio::spawn(peer.answer_with_keys());
    };
    let calls = futures_util::future::join_all((0..50_u8).map(|key| {
        let client = client.clone();
        async move { client.get([key]).await.unwrap().unwrap().value }
    }));
    let (values, ()) = tokio::join!(calls, node);
    assert!(
        values
            .iter()
            .zip(0..)
            .all(|(value, key)| value == &[key][..])
    );
    assert!(a.is_idle(), "one connection for all");
}

#[tokio::test(start_paused = true)]
async fn cluster_without_leader_is_not_dialled_anew_on_each_turn() {
    let network = Network::new();
    let (mut a, mut b) = (network.node("a:1"), network.node("b:1"));
    let client = client(&network, &["a:1", "b:1"]);
    let nodes = async {
        let mut first = a.accept().await;
        let asked = first.next().await;
        first.refuse(&asked, Status::NoLeader).await;
        let mut second = b.accept().await;
        for turn in 0..5 {
            let peer = [&mut second, &mut first].into_iter().nth(turn % 2);
            let peer = peer.expect("there are two");
            let asked = peer.next().await;
            peer.refuse(&asked, Status::NoLeader).await;
        }
        let asked = first.next().await;
        first.answer(&asked, b"").await;
        (first, second)
    };
    let (written, _peers) = tokio::join!(client.put("k", "v"), nodes);
    written.unwrap();
    assert!(a.is_idle() && b.is_idle());
}

#[tokio::test(start_paused = true)]
async fn a_refusal_in_words_outweighs_nodes_that_cannot_be_reached() {
    let network = Network::new();
    let mut a = network.node("a:1");
    let client = client(&network, &["a:1", "b:1", "c:1"]);
    let refuse_all = async {
        let mut peer = a.accept().await;
        loop {
            let asked = peer.next().await;
            peer.refuse(&asked, Status::NoLeader).await;
        }
    };
    let error = tokio::select! {
        written = client.put("k", "v") => written.unwrap_err(),
        () = refuse_all => unreachable!("it refuses for ever"),
    };
    let ClientError::Unavailable { reason, .. } = &error else {
        panic!("{error}")
    };
    assert!(reason.starts_with("no_leader"), "{reason}");
}

#[tokio::test(start_paused = true)]
async fn connection_that_rested_is_not_trusted() {
    let network = Network::new();
    let (mut a, mut b) = (network.node("a:1"), network.node("b:1"));
    let client = client(&network, &["a:1", "b:1"]);
    let nodes = async {
        let mut first = a.accept().await;
        let asked = first.next().await;
        first.refuse(&asked, Status::NoLeader).await;
        let mut second = b.accept().await;
        for _ in 0..2 {
            let asked = second.next().await;
            second.answer(&asked, b"").await;
        }
        let asked = second.next().await;
        second.refuse(&asked, Status::NoLeader).await;
        let mut again = a.accept().await;
        let asked = again.next().await;
        again.answer(&asked, b"").await;
        (first, second, again)
    };
    let calls = async {
        client.put("k", "v").await.unwrap();
        tokio::time::sleep(Duration::from_secs(6)).await;
        client.put("k", "v").await.unwrap();
        client.put("k", "v").await.unwrap();
    };
    tokio::join!(calls, nodes);
}
