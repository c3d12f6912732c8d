//! Two machines that hand datagrams to each other.

use bytes::BytesMut;
use kelp_seams::{Clock, ManualClock, Monotonic, WallMillis};
use kelp_wire::Datagram;

use super::*;
use crate::heartbeat::exchange::{Exchange, Moment};
use crate::heartbeat::liveness::{Lost, PeerLiveness, RefusedHeartbeat};

/// Nodes 1 and 2, with clocks of their own that run alike.
struct Pair {
    exchanges: [Exchange; 2],
    clocks: [ManualClock; 2],
}

impl Pair {
    fn new() -> Self {
        let mut exchanges = [1, 2].map(|number| Exchange::new(identity(number, 5)));
        exchanges[0].set_peers(&peers(&[2]));
        exchanges[1].set_peers(&peers(&[1]));
        let clocks = [ManualClock::new(), ManualClock::new()];
        clocks[1].advance(Duration::from_secs(1_000));
        for clock in &clocks {
            clock.set_wall(WallMillis::new(1_767_225_600_000));
        }
        Self { exchanges, clocks }
    }

    fn now(&self, number: u16) -> Moment {
        let clock = &self.clocks[place(number)];
        Moment {
            monotonic: clock.monotonic(),
            wall: clock.wall(),
        }
    }

    fn pass(&self, millis: u64) {
        for clock in &self.clocks {
            clock.advance(Duration::from_millis(millis));
        }
    }

    /// The next heartbeat of a node to the other.
    fn beat(&mut self, from: u16) -> BytesMut {
        let mut out = BytesMut::new();
        let (to, now) = (3 - from, self.now(from));
        let secret = secret(from, to);
        let exchange = &mut self.exchanges[place(from)];
        exchange.beat(node_id(to), &vitals(), &secret, now, &mut out);
        out
    }

    fn receive(&mut self, to: u16, bytes: &[u8]) -> Result<(), RefusedHeartbeat> {
        let now = self.now(to);
        let datagram = Datagram::decode(bytes).expect("a datagram");
        let secret_of =
            |from: NodeId, key| Some(secret(from.get(), to)).filter(|secret| secret.id() == key);
        self.exchanges[place(to)].receive(&datagram, now, secret_of)
    }

    /// How node `number` sees the other.
    fn seen(&self, number: u16) -> PeerLiveness {
        let now = self.now(number).monotonic;
        let mut all = self.exchanges[place(number)].liveness(now);
        assert_eq!(all.len(), 1);
        all.remove(0)
    }

    /// Heartbeats in both directions for some time, 2 ms under way.
    fn talk(&mut self, rounds: u32) {
        for _ in 0..rounds {
            let datagrams = [self.beat(1), self.beat(2)];
            self.pass(2);
            self.receive(2, &datagrams[0]).expect("valid");
            self.receive(1, &datagrams[1]).expect("valid");
            self.pass(98);
        }
    }
}

fn place(number: u16) -> usize {
    usize::from(number) - 1
}

#[test]
fn two_nodes_learn_of_each_other() {
    let mut pair = Pair::new();
    pair.talk(20);
    for number in [1, 2] {
        let seen = pair.seen(number);
        assert_eq!(seen.node, node_id(3 - number));
        assert_eq!(seen.age, Some(Duration::from_millis(98)));
        assert_eq!(seen.round_trip, Some(Duration::from_millis(4)));
        assert_eq!(seen.clock_offset_millis, Some(0));
        let all = |count| {
            Some(Lost {
                received: count,
                window: count,
            })
        };
        assert_eq!((seen.lost, seen.lost_there), (all(20), all(19)));
        assert_eq!((seen.sent, seen.received), (20, 20));
        let told = seen.told.unwrap();
        assert_eq!(
            (told.term, told.committed, told.applied),
            (3, Some(10), None)
        );
        assert_eq!(told.sync_age_millis, Some(7));
        assert_eq!(told.sync_p99_micros, Some(u32::MAX), "as much as fits");
        assert_eq!(told.software_version, env!("CARGO_PKG_VERSION"));
    }
}

#[test]
fn one_changed_bit_anywhere_is_refused() {
    let mut pair = Pair::new();
    pair.talk(1);
    let genuine = pair.beat(1);
    let before = pair.seen(2);
    for bit in 4 * 8..genuine.len() * 8 {
        let mut changed = genuine.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(pair.receive(2, &changed).is_err(), "bit {bit}");
    }
    assert_eq!(pair.seen(2), before, "nothing of them counts");
    assert_eq!(pair.receive(2, &genuine), Ok(()));
}

#[test]
fn what_is_wrong_is_told_apart() {
    let mut pair = Pair::new();
    let genuine = pair.beat(1);
    let changed = |at: usize, byte: u8| {
        let mut changed = genuine.clone();
        changed[at] = byte;
        changed
    };
    let last = genuine.len() - 1;
    let cases = [
        (changed(4, 9), RefusedHeartbeat::Version),
        (changed(171, 99), RefusedHeartbeat::Malformed),
        (changed(8, 0), RefusedHeartbeat::Cluster),
        (changed(29, 9), RefusedHeartbeat::Stranger),
        (changed(31, 0xEE), RefusedHeartbeat::Key),
        (changed(last, genuine[last] ^ 1), RefusedHeartbeat::Mac),
        (changed(87, 1), RefusedHeartbeat::Mac),
    ];
    for (bytes, reason) in cases {
        assert_eq!(pair.receive(2, &bytes), Err(reason));
    }
}

#[test]
fn a_seal_with_the_secret_of_another_direction_is_wrong() {
    let mut pair = Pair::new();
    let bytes = pair.beat(1);
    let datagram = Datagram::decode(&bytes).unwrap();
    let now = pair.now(2);
    let wrong = |_: NodeId, _| Some(secret(2, 1));
    let refused = pair.exchanges[1].receive(&datagram, now, wrong);
    assert_eq!(refused, Err(RefusedHeartbeat::Mac));
    // The sender's own datagram, sent back to it, names a key that it does not take.
    assert_eq!(pair.receive(1, &bytes), Err(RefusedHeartbeat::Stranger));
}

#[test]
fn a_replay_is_refused_and_a_late_one_counts() {
    let mut pair = Pair::new();
    let [first, second, third] = [0; 3].map(|_| pair.beat(1));
    assert_eq!(pair.receive(2, &first), Ok(()));
    assert_eq!(pair.receive(2, &third), Ok(()));
    let age = |pair: &Pair| pair.seen(2).age;
    pair.pass(50);
    assert_eq!(pair.receive(2, &second), Ok(()));
    assert_eq!(
        age(&pair),
        Some(Duration::from_millis(50)),
        "the newest tells"
    );
    for bytes in [&first, &second, &third] {
        assert_eq!(pair.receive(2, bytes), Err(RefusedHeartbeat::Replay));
    }
    assert_eq!(pair.seen(2).received, 3);
}

#[test]
fn lost_heartbeats_are_counted_on_both_sides() {
    let mut pair = Pair::new();
    for round in 0..200 {
        let there = pair.beat(1);
        let back = pair.beat(2);
        pair.pass(1);
        if round % 4 != 3 {
            pair.receive(2, &there).unwrap();
        }
        pair.receive(1, &back).unwrap();
        pair.pass(99);
    }
    let lost = pair.seen(2).lost.unwrap();
    assert_eq!((lost.window, lost.permille()), (100, 250));
    assert!((lost.ratio() - 0.25).abs() < 1e-9);
    assert_eq!(pair.seen(1).lost.unwrap().permille(), 0);
    let lost_there = pair.seen(1).lost_there.unwrap();
    assert!(
        (245..=260).contains(&lost_there.permille()),
        "{lost_there:?}"
    );
    // The rest is silence.
    pair.pass(5_000);
    assert!(pair.seen(1).lost.unwrap().permille() >= 480);
    pair.pass(60_000);
    assert_eq!(pair.seen(1).lost.unwrap().permille(), 1_000);
    assert_eq!(pair.seen(1).round_trip, None);
}

#[test]
fn a_restarted_peer_begins_anew() {
    let mut pair = Pair::new();
    pair.talk(50);
    let old = pair.beat(1);
    pair.exchanges[0] = Exchange::new(identity(1, 6));
    pair.exchanges[0].set_peers(&peers(&[2]));
    let new = pair.beat(1);
    // What the peer echoes of the boot before is not taken for an echo of this one.
    let back = pair.beat(2);
    assert_eq!(pair.receive(1, &back), Ok(()));
    assert_eq!(
        (pair.seen(1).round_trip, pair.seen(1).lost_there),
        (None, None)
    );
    assert_eq!(pair.receive(2, &new), Ok(()));
    assert_eq!(pair.receive(2, &old), Err(RefusedHeartbeat::Replay));
    let seen = pair.seen(2);
    assert_eq!(seen.round_trip, None, "it has echoed nothing yet");
    assert_eq!(
        seen.lost,
        Some(Lost {
            received: 1,
            window: 1
        })
    );
    pair.talk(2);
    for number in [1, 2] {
        assert!(pair.seen(number).round_trip.is_some());
    }
}

#[test]
fn who_is_no_member_leaves_no_trace() {
    let mut pair = Pair::new();
    pair.talk(1);
    pair.exchanges[1].set_peers(&peers(&[2, 3]));
    let bytes = pair.beat(1);
    assert_eq!(pair.receive(2, &bytes), Err(RefusedHeartbeat::Stranger));
    let all = pair.exchanges[1].liveness(Monotonic::default());
    let nodes: Vec<u16> = all.iter().map(|seen| seen.node.get()).collect();
    assert_eq!(nodes, [3], "neither the one that left nor itself");
}
