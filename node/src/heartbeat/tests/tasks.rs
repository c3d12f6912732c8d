//! Whole nodes' heartbeats over a network in memory, in paused time.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Mutex;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use kelp_seams::{Clock, Monotonic, WallMillis};
use kelp_wire::{HeartbeatKeyId, MAGIC, Reading, encode_telemetry};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::network::{Door, Network};
use super::*;
use crate::heartbeat::surroundings::{Look, Surroundings};
use crate::heartbeat::{
    HeartbeatParts, HeartbeatState, Heartbeats, PeerLiveness, RefusedHeartbeat, TelemetryMode,
};
use crate::peer::lock;

/// The clock that tokio pauses.
struct PausedClock(Instant);

impl Clock for PausedClock {
    fn monotonic(&self) -> Monotonic {
        Monotonic::from_nanos(0) + self.0.elapsed()
    }

    fn wall(&self) -> WallMillis {
        WallMillis::new(u64::try_from(self.0.elapsed().as_millis()).unwrap())
    }
}

/// A node whose links are what a test says.
struct Scripted {
    number: u16,
    members: BTreeSet<NodeId>,
    reachable: Mutex<BTreeSet<NodeId>>,
    name_of: fn(u16) -> String,
}

impl Surroundings for Scripted {
    fn look(&self) -> Look {
        Look {
            peers: self.members.clone(),
            vitals: vitals(),
        }
    }

    fn reachable(&self) -> BTreeSet<NodeId> {
        lock(&self.reachable).clone()
    }

    fn address(&self, peer: NodeId) -> Option<String> {
        Some((self.name_of)(peer.get()))
    }

    fn dialled_secret(&self, peer: NodeId) -> Option<Arc<LinkSecret>> {
        Some(secret(self.number, peer.get()))
    }

    fn accepted_secret(&self, peer: NodeId, key: HeartbeatKeyId) -> Option<Arc<LinkSecret>> {
        Some(secret(peer.get(), self.number)).filter(|secret| secret.id() == key)
    }

    fn sample(&self) -> BoxFuture<'_, ()> {
        async {}.boxed()
    }
}

struct TestNode {
    heartbeats: Arc<Heartbeats>,
    surroundings: Arc<Scripted>,
    task: JoinHandle<()>,
}

impl Drop for TestNode {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn address(number: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 4_800 + number))
}

fn start_named(network: &Arc<Network>, number: u16, name_of: fn(u16) -> String) -> TestNode {
    let others: Vec<u16> = (1..=3).filter(|other| *other != number).collect();
    let surroundings = Arc::new(Scripted {
        number,
        members: peers(&others),
        reachable: Mutex::new(peers(&others)),
        name_of,
    });
    let identity = identity(number, 1);
    let parts = HeartbeatParts {
        cluster: identity.cluster,
        group: identity.group,
        node: identity.node,
        boot: identity.boot,
        address: address(number),
        telemetry: TelemetryMode::Local,
        clock: Arc::new(PausedClock(Instant::now())),
        surroundings: Arc::clone(&surroundings) as Arc<dyn Surroundings>,
    };
    let transport = Arc::new(Door(Arc::clone(network)));
    let heartbeats = Arc::new(Heartbeats::new(parts, transport));
    let running = Arc::clone(&heartbeats);
    let task = tokio::spawn(async move {
        running.run().await;
    });
    TestNode {
        heartbeats,
        surroundings,
        task,
    }
}

fn start(network: &Arc<Network>, number: u16) -> TestNode {
    start_named(network, number, |number| address(number).to_string())
}

async fn seconds(count: u64) {
    sleep(Duration::from_secs(count)).await;
}

fn seen(node: &TestNode, peer: u16) -> PeerLiveness {
    let peers = node.heartbeats.peers();
    let found = peers.into_iter().find(|seen| seen.node == node_id(peer));
    found.expect("a member")
}

#[tokio::test(start_paused = true)]
async fn three_nodes_hear_each_other() {
    let network = Arc::new(Network::default());
    let nodes = [1, 2, 3].map(|number| start(&network, number));
    seconds(20).await;
    for node in &nodes {
        assert_eq!(node.heartbeats.dropped(), 0);
        let peers = node.heartbeats.peers();
        assert_eq!(peers.len(), 2);
        for peer in peers {
            assert_eq!(peer.state, HeartbeatState::Arriving);
            assert!(peer.age.unwrap() <= Duration::from_millis(100), "{peer:?}");
            assert!(
                peer.round_trip.unwrap() <= Duration::from_millis(1),
                "{peer:?}"
            );
            assert_eq!(peer.lost.unwrap().permille(), 0);
            assert!((195..=201).contains(&peer.sent), "{}", peer.sent);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn names_are_looked_up() {
    let network = Arc::new(Network::default());
    let name_of = |number| format!("n{number}:4801");
    let nodes = [1, 2].map(|number| start_named(&network, number, name_of));
    seconds(2).await;
    assert_eq!(seen(&nodes[0], 2).received, 0);
    for number in [1, 2] {
        network.set_name(&name_of(number), address(number));
    }
    seconds(35).await;
    assert_eq!(seen(&nodes[0], 2).state, HeartbeatState::Arriving);
    // Node 2 moves.
    let moved = SocketAddr::from((Ipv4Addr::LOCALHOST, 9_999));
    network.set_name(&name_of(2), moved);
    seconds(35).await;
    assert!(seen(&nodes[1], 1).age.unwrap() > Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn blocked_udp_is_told_from_a_dead_peer() {
    let network = Arc::new(Network::default());
    let nodes = [1, 2, 3].map(|number| start(&network, number));
    network.set_filter(|from, _| from != address(2));
    seconds(10).await;
    assert_eq!(seen(&nodes[0], 2).state, HeartbeatState::Blocked);
    assert_eq!(seen(&nodes[0], 3).state, HeartbeatState::Arriving);
    assert_eq!(seen(&nodes[1], 1).state, HeartbeatState::Arriving);
    lock(&nodes[0].surroundings.reachable).clear();
    seconds(1).await;
    assert_eq!(seen(&nodes[0], 2).state, HeartbeatState::Missing);
    network.set_filter(|_, _| true);
    seconds(1).await;
    assert_eq!(seen(&nodes[0], 2).state, HeartbeatState::Arriving);
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_garbage_is_counted_and_does_not_silence_the_peers() {
    let network = Arc::new(Network::default());
    let nodes = [1, 2].map(|number| start(&network, number));
    seconds(1).await;
    let stranger = address(77);
    for round in 0_u64..2_000 {
        for byte in 0..5 {
            let kind = u8::try_from(round % 7).unwrap();
            let garbage = [MAGIC, kind, 0, byte, 1, 2, 3];
            let length = 4 + usize::from(byte.min(3));
            network
                .send(&garbage[..length], stranger, address(1))
                .unwrap();
        }
        sleep(Duration::from_millis(10)).await;
    }
    let heartbeats = &nodes[0].heartbeats;
    let refused = heartbeats.refused(RefusedHeartbeat::Malformed);
    let telemetry = heartbeats.gauges().datagrams();
    assert_eq!(refused + telemetry, 10_000);
    assert!(refused > 8_000 && telemetry > 0, "{refused} {telemetry}");
    assert_eq!(heartbeats.peers().len(), 2, "no more than the members");
    assert_eq!(seen(&nodes[0], 2).state, HeartbeatState::Arriving);
}

#[tokio::test(start_paused = true)]
async fn what_comes_faster_than_it_is_looked_at_is_dropped() {
    let network = Arc::new(Network::default());
    let node = start(&network, 1);
    seconds(1).await;
    let mut taken = 0;
    while taken < 3_000 {
        if network.send(b"garbage", address(77), address(1)).is_ok() {
            taken += 1;
        } else {
            tokio::task::yield_now().await;
            if node.heartbeats.dropped() > 1_500 {
                break;
            }
        }
    }
    seconds(2).await;
    let refused = node.heartbeats.refused(RefusedHeartbeat::Malformed);
    let dropped = node.heartbeats.dropped();
    assert_eq!(refused + dropped, taken);
    assert!(dropped > 1_000, "{dropped}");
}

#[tokio::test(start_paused = true)]
async fn a_taken_port_is_tried_again() {
    let network = Arc::new(Network::default());
    let holder = start(&network, 1);
    seconds(1).await;
    let nodes = [start(&network, 1), start(&network, 2)];
    seconds(7).await;
    assert_eq!(seen(&nodes[0], 2).received, 0);
    drop(holder);
    seconds(7).await;
    assert_eq!(seen(&nodes[0], 2).state, HeartbeatState::Arriving);
}

#[tokio::test(start_paused = true)]
async fn telemetry_becomes_gauges() {
    let network = Arc::new(Network::default());
    let node = start(&network, 1);
    seconds(1).await;
    let mut bytes = bytes::BytesMut::new();
    let reading = Reading {
        name: "queue.depth",
        value: 3.0,
    };
    encode_telemetry(&mut bytes, &[reading]).unwrap();
    network.send(&bytes, address(77), address(1)).unwrap();
    network
        .send(b"\xa1\x05\x00\x07bad=one", address(77), address(1))
        .unwrap();
    seconds(1).await;
    let expected = [("queue.depth".to_owned(), 3.0)];
    assert_eq!(node.heartbeats.telemetry(), expected);
    let gauges = node.heartbeats.gauges();
    assert_eq!((gauges.datagrams(), gauges.dropped()), (2, 1));
}
