//! Heartbeats: what nodes tell each other over UDP, ten times a second, beside the peer links.
//!
//! ```text
//! Surroundings (raft, disk, links) --> Exchange --sealed datagram--> socket
//!                                         ^ |
//! socket --datagram--> Intake --heartbeat-+ +--> liveness of each peer: status, metrics
//!                         \---telemetry--> Gauges: metrics
//! ```
//!
//! A heartbeat shows that a node lives, how its disk does, and how far away it is. It is a hint:
//! nothing here grants a vote, a read or a write, and a cluster whose UDP is blocked works the same
//! and says so. [`exchange`], [`window`], [`estimate`], [`silence`] and [`gauges`] decide in pure
//! code; [`task`] holds the socket and the timer; [`surroundings`] knows the rest of the node.
//! What does not carry a valid seal of a peer is counted and dropped, and nothing is ever answered.
//! The bytes are drawn in `docs/formats/heartbeat.md`.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kelp_client::Transport;
use kelp_raft::{Boot, ClusterId, GroupId, NodeId};
use kelp_seams::Clock;
use kelp_wire::{Datagram, DatagramOpcode, Telemetry};

use crate::peer::lock;

mod estimate;
mod exchange;
mod gauges;
mod intake;
mod liveness;
mod silence;
mod surroundings;
mod targets;
mod task;
#[cfg(test)]
mod tests;
mod track;
mod window;

use exchange::{Exchange, Identity, Moment};
use gauges::Gauges;

pub use gauges::TelemetryMode;
pub(crate) use liveness::{HeartbeatState, Lost, PeerLiveness, RefusedHeartbeat};
pub(crate) use surroundings::{NodeSurroundings, Surroundings};

/// Time between two heartbeats to a peer. Ten a second find a dead peer well within the shortest
/// election timeout; at 220 bytes they cost two kilobytes a second per peer and direction.
pub(crate) const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(100);

/// What the heartbeats of a node are made of.
pub(crate) struct HeartbeatParts {
    pub(crate) cluster: ClusterId,
    pub(crate) group: GroupId,
    pub(crate) node: NodeId,
    pub(crate) boot: Boot,
    /// Where datagrams arrive: the address of the peer port.
    pub(crate) address: SocketAddr,
    pub(crate) telemetry: TelemetryMode,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) surroundings: Arc<dyn Surroundings>,
}

/// The heartbeats of one node: what it sends, what it has heard, and what it counted.
pub(crate) struct Heartbeats {
    address: SocketAddr,
    transport: Arc<dyn Transport>,
    clock: Arc<dyn Clock>,
    surroundings: Arc<dyn Surroundings>,
    exchange: Mutex<Exchange>,
    gauges: Gauges,
    refused: [AtomicU64; RefusedHeartbeat::ALL.len()],
    dropped: AtomicU64,
}

impl Heartbeats {
    pub(crate) fn new(parts: HeartbeatParts, transport: Arc<dyn Transport>) -> Self {
        let identity = Identity {
            cluster: parts.cluster,
            group: parts.group,
            node: parts.node,
            boot: parts.boot,
        };
        Self {
            address: parts.address,
            transport,
            clock: parts.clock,
            surroundings: parts.surroundings,
            exchange: Mutex::new(Exchange::new(identity)),
            gauges: Gauges::new(parts.telemetry, parts.address.ip()),
            refused: Default::default(),
            dropped: AtomicU64::new(0),
        }
    }

    /// How each other member is doing by its heartbeats, by node id.
    pub(crate) fn peers(&self) -> Vec<PeerLiveness> {
        let now = self.clock.monotonic();
        lock(&self.exchange).liveness(now)
    }

    /// How many datagrams were refused for `reason`.
    pub(crate) fn refused(&self, reason: RefusedHeartbeat) -> u64 {
        self.refused[reason as usize].load(Ordering::Relaxed)
    }

    /// How many datagrams were dropped unseen: those that the socket did not take, and those that
    /// arrived faster than they are looked at.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// The telemetry that was taken.
    pub(crate) fn gauges(&self) -> &Gauges {
        &self.gauges
    }

    /// Telemetry that still counts, by name.
    pub(crate) fn telemetry(&self) -> Vec<(String, f64)> {
        self.gauges.values(self.clock.monotonic())
    }

    /// Bytes that the disk of the data directory had left at the last sample.
    pub(crate) fn disk_free_bytes(&self) -> Option<u64> {
        self.surroundings.look().vitals.disk_free_bytes
    }

    fn count_dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    fn count_refused(&self, reason: RefusedHeartbeat) {
        self.refused[reason as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn now(&self) -> Moment {
        Moment {
            monotonic: self.clock.monotonic(),
            wall: self.clock.wall(),
        }
    }

    /// Takes one datagram, whatever it is.
    fn take(&self, bytes: &[u8], from: SocketAddr) {
        let Ok(datagram) = Datagram::decode(bytes) else {
            self.count_refused(RefusedHeartbeat::Malformed);
            return;
        };
        let now = self.now();
        match datagram.opcode {
            DatagramOpcode::Telemetry => {
                let telemetry = Telemetry::decode(&datagram);
                self.gauges.take(&telemetry, from.ip(), now.monotonic);
            }
            DatagramOpcode::Heartbeat => {
                let secret_of = |node, key| self.surroundings.accepted_secret(node, key);
                let taken = lock(&self.exchange).receive(&datagram, now, secret_of);
                if let Err(reason) = taken {
                    self.count_refused(reason);
                }
            }
        }
    }
}
