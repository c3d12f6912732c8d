//! What is known of a peer by its heartbeats, as status pages and metrics show it.

use std::time::Duration;

use kelp_raft::NodeId;
use kelp_wire::HeartbeatRole;

/// How heartbeats of a peer arrive here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum HeartbeatState {
    /// None has come yet, and it is too early to wonder.
    #[default]
    Waiting,
    /// They come.
    Arriving,
    /// They have stopped, or the peer cannot be reached at all.
    Missing,
    /// The peer is reached over TCP, and its heartbeats do not come.
    Blocked,
}

impl HeartbeatState {
    /// The state as a word in status reports.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Arriving => "arriving",
            Self::Missing => "missing",
            Self::Blocked => "blocked",
        }
    }
}

/// Why a datagram did not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefusedHeartbeat {
    /// It does not follow the layout.
    Malformed,
    /// It is of a version that this node does not know.
    Version,
    /// It names another cluster or group.
    Cluster,
    /// It names a sender that is no other member.
    Stranger,
    /// It names a key that does not count, or not any more.
    Key,
    /// Its MAC is wrong.
    Mac,
    /// It has arrived before, or comes too late.
    Replay,
}

impl RefusedHeartbeat {
    /// All reasons, in the order of their numbers.
    pub(crate) const ALL: [Self; 7] = [
        Self::Malformed,
        Self::Version,
        Self::Cluster,
        Self::Stranger,
        Self::Key,
        Self::Mac,
        Self::Replay,
    ];

    /// The reason as a metric label.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Version => "version",
            Self::Cluster => "cluster",
            Self::Stranger => "stranger",
            Self::Key => "key",
            Self::Mac => "mac",
            Self::Replay => "replay",
        }
    }
}

/// How many of the last heartbeats in one direction arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lost {
    /// Those that arrived.
    pub(crate) received: u16,
    /// Those that should have; at least 1.
    pub(crate) window: u16,
}

impl Lost {
    /// The share that did not arrive, from 0 to 1.
    pub(crate) fn ratio(self) -> f64 {
        let lost = self.window.saturating_sub(self.received);
        f64::from(lost) / f64::from(self.window.max(1))
    }

    /// The share that did not arrive, in thousandths.
    pub(crate) fn permille(self) -> u16 {
        let lost = u32::from(self.window.saturating_sub(self.received));
        u16::try_from(lost * 1_000 / u32::from(self.window.max(1))).unwrap_or(1_000)
    }
}

/// What a peer last told of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) role: HeartbeatRole,
    pub(crate) term: u64,
    pub(crate) committed: Option<u64>,
    pub(crate) applied: Option<u64>,
    pub(crate) sync_age_millis: Option<u32>,
    pub(crate) sync_p99_micros: Option<u32>,
    pub(crate) disk_free_bytes: Option<u64>,
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) software_version: String,
}

/// One peer, seen from this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PeerLiveness {
    pub(crate) node: NodeId,
    pub(crate) state: HeartbeatState,
    /// How long ago its last heartbeat arrived.
    pub(crate) age: Option<Duration>,
    /// The smoothed round trip; absent while the peer does not echo.
    pub(crate) round_trip: Option<Duration>,
    /// By how much its wall clock is ahead of the one here.
    pub(crate) clock_offset_millis: Option<i64>,
    /// What of the peer's gets lost on the way here.
    pub(crate) lost: Option<Lost>,
    /// What of this node's gets lost on the way to the peer, as the peer says.
    pub(crate) lost_there: Option<Lost>,
    /// Heartbeats sent to it.
    pub(crate) sent: u64,
    /// Valid ones received from it.
    pub(crate) received: u64,
    pub(crate) told: Option<Told>,
}
