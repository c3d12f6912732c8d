//! What a caller decides about a group, and how that becomes an openraft configuration.
//!
//! Timing and the retention of the log are tunable. Everything else is fixed here because a
//! different value is unsafe or breaks an assumption elsewhere in the crate; each such line says
//! which.

use std::sync::Arc;
use std::time::Duration;

use kelp_storage::{Database, Seams};
use openraft::{Config, SnapshotPolicy};

use crate::bus::PeerBus;
use crate::error::StartError;
use crate::model::{ClusterId, GroupId, NodeId};
use crate::observer::ApplyObserver;
use crate::retention::LogRetention;

/// Log entries per append request; its bytes are cut by the log reader, long before this.
const APPEND_ENTRIES_MAX: u64 = 4096;

/// Messages waiting for the Raft core. The proposer admits by bytes long before; this only bounds
/// the memory of a core that is stuck.
const CORE_QUEUE_MAX: u64 = 8192;

/// Runs of committed entries that wait to be applied, most of them of one entry. An engine without
/// room makes them wait, for the time of a flush or of much compaction; the core does so too once
/// there are as many, and answers neither heartbeats nor appends. It is a minute at a thousand
/// entries per second; a run takes some hundred bytes, its entries stay in the log.
const APPLY_QUEUE_MAX: u64 = 1 << 16;

/// Delays between attempts to reach a peer. Short ones first, so that a restarted peer rejoins
/// within a heartbeat or two; the last repeats for ever.
const RECONNECT_BACKOFF: &str = "25ms 50ms 100ms 200ms ..500ms";

/// How long to wait before a silent leader is replaced.
///
/// All members of a group should agree. Failover takes about `election_max` plus a random part
/// between `election_min` and `election_max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Interval of the leader's heartbeats; default 100 ms. At least ten times the 99.9th
    /// percentile of an fsync, because a heartbeat is answered after the log before it is synced.
    pub heartbeat: Duration,
    /// Shortest silence that starts an election; default 250 ms, more than one heartbeat.
    pub election_min: Duration,
    /// Longest silence that starts an election; default 500 ms, more than `election_min`.
    pub election_max: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_millis(100),
            election_min: Duration::from_millis(250),
            election_max: Duration::from_millis(500),
        }
    }
}

/// Which replica this is.
#[derive(Debug, Clone)]
pub struct RaftOptions {
    /// Identity of this node within the cluster, never reused.
    pub node: NodeId,
    /// Identity of the cluster.
    pub cluster: ClusterId,
    /// The Raft group; a node has one replica of it.
    pub group: GroupId,
    /// Election and heartbeat timing.
    pub timing: Timing,
    /// How much of the log is kept.
    pub retention: LogRetention,
}

/// What a replica is built from.
#[derive(Clone)]
pub struct RaftParts {
    /// Holds the log and the state; already recovered.
    pub database: Database,
    /// Clock and executor; the same that the database runs on.
    pub seams: Seams,
    /// Carries messages to the other members.
    pub bus: Arc<dyn PeerBus>,
    /// Told about each applied entry that this node had a part in.
    pub observer: Arc<dyn ApplyObserver>,
}

/// Whether a restarted leader may resume without an election. Production code knows one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaderRestore {
    /// A restarted node starts as a follower.
    Never,
    /// openraft's default, which loses acknowledged writes; exists to show that the tests notice.
    #[cfg(test)]
    Allowed,
}

/// Builds the openraft configuration of a replica.
pub(crate) fn raft_config(
    options: &RaftOptions,
    restore: LeaderRestore,
) -> Result<Arc<Config>, StartError> {
    let timing = options.timing;
    let election_max = milliseconds(timing.election_max)?;
    let config = Config {
        cluster_name: options.cluster.to_string(),
        heartbeat_interval: milliseconds(timing.heartbeat)?,
        election_timeout_min: milliseconds(timing.election_min)?,
        election_timeout_max: election_max,
        // Heartbeats are never suppressed by replication: their replies carry the peers' clocks.
        heartbeat_min_interval: Some(0),
        // A node that cannot win must not raise the term of those who follow a healthy leader.
        enable_pre_vote: Some(true),
        // A restarted leader that resumed its term could have lost entries that followers hold
        // and would write others in their place.
        enable_leader_restore: Some(match restore {
            LeaderRestore::Never => false,
            #[cfg(test)]
            LeaderRestore::Allowed => true,
        }),
        // A voter whose log went back has lost what it promised; it must be replaced, not refilled.
        allow_log_reversion: Some(false),
        // An isolated leader must let a connected majority elect another one.
        quorum_loss_probe_interval: Some(election_max.saturating_mul(2)),
        max_payload_entries: APPEND_ENTRIES_MAX,
        // `retention` decides, by bytes.
        snapshot_policy: SnapshotPolicy::Never,
        max_in_snapshot_log_to_keep: u64::MAX,
        api_channel_size: Some(CORE_QUEUE_MAX),
        state_machine_channel_size: Some(APPLY_QUEUE_MAX),
        backoff: RECONNECT_BACKOFF.to_string(),
        ..Config::default()
    };
    let config = config
        .validate()
        .map_err(|error| StartError::Timing(error.to_string()))?;
    if restore == LeaderRestore::Never {
        assert_eq!(
            config.enable_leader_restore,
            Some(false),
            "leader restore must be off"
        );
    }
    assert_eq!(config.enable_pre_vote, Some(true), "pre-vote must be on");
    Ok(Arc::new(config))
}

fn milliseconds(duration: Duration) -> Result<u64, StartError> {
    u64::try_from(duration.as_millis())
        .map_err(|_| StartError::Timing(format!("{duration:?} is too long")))
}
