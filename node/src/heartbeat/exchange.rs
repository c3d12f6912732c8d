//! The heartbeats of a node with all its peers, as a machine without socket, timer or clock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use kelp_raft::{Boot, ClusterId, GroupId, NodeId};
use kelp_seams::{Monotonic, WallMillis};
use kelp_wire::{
    Datagram, DatagramFault, Heartbeat, HeartbeatKeyId, HeartbeatStamp, SealedHeartbeat,
};

use super::HEARTBEAT_INTERVAL;
use super::liveness::{PeerLiveness, RefusedHeartbeat};
use super::silence::News;
use super::surroundings::Vitals;
use super::track::Track;
use crate::peer::LinkSecret;

/// Now, on both clocks of this node.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moment {
    pub(super) monotonic: Monotonic,
    pub(super) wall: WallMillis,
}

/// Who this node is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity {
    pub(super) cluster: ClusterId,
    pub(super) group: GroupId,
    pub(super) node: NodeId,
    pub(super) boot: Boot,
}

/// All peers. There are as many tracks as other members, whatever arrives.
#[derive(Debug)]
pub(super) struct Exchange {
    identity: Identity,
    tracks: BTreeMap<NodeId, Track>,
}

impl Exchange {
    pub(super) fn new(identity: Identity) -> Self {
        Self {
            identity,
            tracks: BTreeMap::new(),
        }
    }

    /// Tells who the other members are; what is known of any other node is forgotten.
    pub(super) fn set_peers(&mut self, peers: &BTreeSet<NodeId>) {
        self.tracks.retain(|node, _| peers.contains(node));
        for node in peers.iter().filter(|node| **node != self.identity.node) {
            self.tracks.entry(*node).or_default();
        }
    }

    /// Appends the next heartbeat to `peer`; nothing when it is no member.
    pub(super) fn beat(
        &mut self,
        peer: NodeId,
        vitals: &Vitals,
        secret: &LinkSecret,
        now: Moment,
        out: &mut BytesMut,
    ) {
        let identity = self.identity;
        let Some(track) = self.tracks.get_mut(&peer) else {
            return;
        };
        let heartbeat = Heartbeat {
            cluster: kelp_wire::ClusterId::new(identity.cluster.get()),
            group: identity.group.get(),
            node: kelp_wire::NodeId::new(identity.node.get()),
            role: vitals.role,
            key: secret.id(),
            boot: identity.boot.get(),
            sequence: track.next_sequence(),
            interval_millis: millis(HEARTBEAT_INTERVAL)
                .and_then(|millis| u16::try_from(millis).ok())
                .unwrap_or(u16::MAX),
            sent: HeartbeatStamp {
                monotonic_nanos: now.monotonic.as_nanos(),
                wall_millis: now.wall.get(),
            },
            term: vitals.term,
            committed: vitals.committed,
            applied: vitals.applied,
            sync_age_millis: vitals.sync_age.map(|age| millis(age).unwrap_or(u32::MAX)),
            sync_p99_micros: vitals
                .sync_p99
                .map(|time| u32::try_from(time.as_micros()).unwrap_or(u32::MAX)),
            disk_free_bytes: vitals.disk_free_bytes,
            memory_bytes: vitals.memory_bytes,
            echo: track.echo(now),
            software_version: env!("CARGO_PKG_VERSION"),
        };
        heartbeat.encode(out, |bytes| secret.sign(bytes));
    }

    /// Takes a heartbeat that arrived. `secret_of` finds the secret of a sender by the id of its
    /// key; nothing is hashed before it has found one.
    ///
    /// # Errors
    /// It does not count, for this reason.
    pub(super) fn receive(
        &mut self,
        datagram: &Datagram<'_>,
        now: Moment,
        secret_of: impl FnOnce(NodeId, HeartbeatKeyId) -> Option<Arc<LinkSecret>>,
    ) -> Result<(), RefusedHeartbeat> {
        let sealed = SealedHeartbeat::decode(datagram).map_err(|fault| match fault {
            DatagramFault::UnknownVersion { .. } => RefusedHeartbeat::Version,
            _ => RefusedHeartbeat::Malformed,
        })?;
        let identity = self.identity;
        if *sealed.cluster().as_bytes() != identity.cluster.get() {
            return Err(RefusedHeartbeat::Cluster);
        }
        let node = NodeId::new(sealed.node().get());
        let track = self.tracks.get_mut(&node);
        let track = track.ok_or(RefusedHeartbeat::Stranger)?;
        let secret = secret_of(node, sealed.key()).ok_or(RefusedHeartbeat::Key)?;
        let heartbeat = sealed.open(|signed, mac| secret.verify(signed, mac));
        let heartbeat = heartbeat.ok_or(RefusedHeartbeat::Mac)?;
        if heartbeat.group != identity.group.get() {
            return Err(RefusedHeartbeat::Cluster);
        }
        if track.accept(&heartbeat, identity.boot.get(), now) {
            Ok(())
        } else {
            Err(RefusedHeartbeat::Replay)
        }
    }

    /// Compares what arrives with what TCP says, and returns what is worth telling.
    pub(super) fn look(
        &mut self,
        reachable: &BTreeSet<NodeId>,
        now: Monotonic,
    ) -> Vec<(NodeId, News)> {
        let look = |(node, track): (&NodeId, &mut Track)| {
            let news = track.look(reachable.contains(node), now)?;
            Some((*node, news))
        };
        self.tracks.iter_mut().filter_map(look).collect()
    }

    /// Every peer, by node id.
    pub(super) fn liveness(&self, now: Monotonic) -> Vec<PeerLiveness> {
        let liveness = |(node, track): (&NodeId, &Track)| track.liveness(*node, now);
        self.tracks.iter().map(liveness).collect()
    }
}

fn millis(duration: Duration) -> Option<u32> {
    u32::try_from(duration.as_millis()).ok()
}
