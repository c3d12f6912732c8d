//! Heartbeats between nodes: as a machine, and over a network in memory.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kelp_raft::{Boot, ClusterId, GroupId, NodeId};
use kelp_wire::HeartbeatRole;

use super::exchange::Identity;
use super::surroundings::Vitals;
use crate::peer::LinkSecret;

mod exchange;
mod network;
mod tasks;

const CLUSTER: ClusterId = ClusterId::new([7; 16]);

fn node_id(number: u16) -> NodeId {
    NodeId::new(number)
}

fn identity(number: u16, boot: u64) -> Identity {
    Identity {
        cluster: CLUSTER,
        group: GroupId::new(0),
        node: node_id(number),
        boot: Boot::new(boot),
    }
}

fn peers(numbers: &[u16]) -> BTreeSet<NodeId> {
    numbers.iter().map(|number| node_id(*number)).collect()
}

/// What node `from` seals its heartbeats to `to` with.
fn secret(from: u16, to: u16) -> Arc<LinkSecret> {
    Arc::new(LinkSecret::of_seed(u8::try_from(from * 16 + to).unwrap()))
}

fn vitals() -> Vitals {
    Vitals {
        role: HeartbeatRole::Follower,
        term: 3,
        committed: Some(10),
        applied: None,
        sync_age: Some(Duration::from_millis(7)),
        sync_p99: Some(Duration::from_secs(10_000)),
        disk_free_bytes: Some(1 << 40),
        memory_bytes: None,
    }
}
