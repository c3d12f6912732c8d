//! What heartbeats need of the rest of the node: who the peers are, their secrets, and how this
//! node is doing.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use kelp_raft::{LogIndex, NodeId, Raft, Role};
use kelp_seams::Executor;
use kelp_storage::{Database, StorageMetrics, Vfs};
use kelp_wire::{HeartbeatKeyId, HeartbeatRole};

use crate::peer::{LinkSecret, PeerLinks, lock};

/// A peer that was heard of over TCP within this time is reachable: links ping every second.
const REACHABLE_WITHIN: Duration = Duration::from_millis(2_500);

/// How this node is doing: what its heartbeats tell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vitals {
    pub(crate) role: HeartbeatRole,
    pub(crate) term: u64,
    pub(crate) committed: Option<u64>,
    pub(crate) applied: Option<u64>,
    pub(crate) sync_age: Option<Duration>,
    pub(crate) sync_p99: Option<Duration>,
    pub(crate) disk_free_bytes: Option<u64>,
    pub(crate) memory_bytes: Option<u64>,
}

/// One look at the node.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    /// The other members.
    pub(crate) peers: BTreeSet<NodeId>,
    pub(crate) vitals: Vitals,
}

/// The rest of the node.
pub(crate) trait Surroundings: Send + Sync + 'static {
    /// The peers and the node as they are now; asked at every beat.
    fn look(&self) -> Look;

    /// The peers that are reached over TCP.
    fn reachable(&self) -> BTreeSet<NodeId>;

    /// The address of a peer's peer port, as "host:port".
    fn address(&self, peer: NodeId) -> Option<String>;

    /// What heartbeats to `peer` are sealed with; `None` while there is no connection to it, which
    /// this call then has opened.
    fn dialled_secret(&self, peer: NodeId) -> Option<Arc<LinkSecret>>;

    /// What heartbeats of `peer` are sealed with that name this key.
    fn accepted_secret(&self, peer: NodeId, key: HeartbeatKeyId) -> Option<Arc<LinkSecret>>;

    /// Looks at what is slow to tell, for the next calls of [`Surroundings::look`].
    fn sample(&self) -> BoxFuture<'_, ()>;
}

/// The surroundings of a real node.
pub(crate) struct NodeSurroundings {
    raft: Raft,
    database: Database,
    links: PeerLinks,
    vfs: Arc<dyn Vfs>,
    executor: Arc<dyn Executor>,
    directory: PathBuf,
    sampled: Mutex<Sampled>,
}

/// What was found at the last sample.
#[derive(Clone, Debug, Default)]
struct Sampled {
    disk_free_bytes: Option<u64>,
    memory_bytes: Option<u64>,
    sync_p99: Option<Duration>,
    /// The counts of syncs by duration at the last two samples, the older one first.
    syncs: [Vec<u64>; 2],
}

impl NodeSurroundings {
    pub(crate) fn new(
        raft: Raft,
        database: Database,
        links: PeerLinks,
        vfs: Arc<dyn Vfs>,
        executor: Arc<dyn Executor>,
        directory: PathBuf,
    ) -> Self {
        Self {
            raft,
            database,
            links,
            vfs,
            executor,
            directory,
            sampled: Mutex::default(),
        }
    }
}

impl Surroundings for NodeSurroundings {
    fn look(&self) -> Look {
        let status = self.raft.status();
        let storage = self.database.metrics();
        let sampled = lock(&self.sampled);
        let vitals = Vitals {
            role: role(status.role),
            term: status.term.get(),
            committed: status.committed.map(LogIndex::get),
            applied: status.applied.map(LogIndex::get),
            // A sync that hangs is what the age is there to show.
            sync_age: storage.wal_sync_running.or(storage.wal_sync_age),
            sync_p99: sampled.sync_p99,
            disk_free_bytes: sampled.disk_free_bytes,
            memory_bytes: sampled.memory_bytes,
        };
        drop(sampled);
        let members = status.members.into_keys();
        Look {
            peers: members.filter(|node| *node != status.node).collect(),
            vitals,
        }
    }

    fn reachable(&self) -> BTreeSet<NodeId> {
        let health = self.links.health().into_iter();
        let reachable = health.filter(|peer| {
            let heard = peer.last_heard.is_some_and(|age| age <= REACHABLE_WITHIN);
            peer.connected && heard
        });
        reachable.map(|peer| peer.node).collect()
    }

    fn address(&self, peer: NodeId) -> Option<String> {
        self.links.book().address(peer)
    }

    fn dialled_secret(&self, peer: NodeId) -> Option<Arc<LinkSecret>> {
        let book = self.links.book();
        if !book.holds_dialled_secret(peer) {
            self.links.want_control(peer);
        }
        book.dialled_secret(peer)
    }

    fn accepted_secret(&self, peer: NodeId, key: HeartbeatKeyId) -> Option<Arc<LinkSecret>> {
        self.links.book().accepted_secret(peer, key)
    }

    fn sample(&self) -> BoxFuture<'_, ()> {
        let (vfs, directory) = (Arc::clone(&self.vfs), self.directory.clone());
        // On the blocking side, because a disk that hangs may hang this too.
        let found = kelp_seams::blocking(self.executor.as_ref(), move || {
            (vfs.free_space(&directory).ok(), resident_memory())
        });
        async move {
            let (disk_free_bytes, memory_bytes) = found.await.unwrap_or_default();
            let storage = self.database.metrics();
            lock(&self.sampled).renew(disk_free_bytes, memory_bytes, &storage);
        }
        .boxed()
    }
}

impl Sampled {
    fn renew(&mut self, disk: Option<u64>, memory: Option<u64>, storage: &StorageMetrics) {
        self.disk_free_bytes = disk;
        self.memory_bytes = memory;
        let counts = &storage.wal_sync_histogram;
        self.sync_p99 = percentile_99(&self.syncs[0], counts);
        self.syncs.rotate_left(1);
        self.syncs[1].clone_from(counts);
    }
}

/// The bound that 99 of 100 syncs between two counts stayed below; `None` when there were none.
/// Bucket `k` counts those of less than 2^k nanoseconds.
fn percentile_99(before: &[u64], after: &[u64]) -> Option<Duration> {
    let between: Vec<u64> = after
        .iter()
        .enumerate()
        .map(|(bucket, count)| count.saturating_sub(before.get(bucket).copied().unwrap_or(0)))
        .collect();
    let total: u64 = between.iter().sum();
    let mut left = total - total / 100;
    for (bucket, count) in between.iter().enumerate() {
        left = left.saturating_sub(*count);
        if left == 0 && total > 0 {
            let exponent = u32::try_from(bucket).unwrap_or(u32::MAX);
            return 1_u64.checked_shl(exponent).map(Duration::from_nanos);
        }
    }
    None
}

fn role(role: Role) -> HeartbeatRole {
    match role {
        Role::Leader => HeartbeatRole::Leader,
        Role::Follower => HeartbeatRole::Follower,
        Role::Candidate => HeartbeatRole::Candidate,
        Role::Learner => HeartbeatRole::Learner,
        Role::Stopped => HeartbeatRole::Other,
    }
}

/// Memory of this process that is not paged out.
#[expect(
    clippy::disallowed_methods,
    reason = "the system's page about this process is no file on a disk"
)]
fn resident_memory() -> Option<u64> {
    let page = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = page.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    kibibytes.checked_mul(1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_percentile_is_of_the_syncs_between_the_samples() {
        let mut after = vec![0; 40];
        assert_eq!(percentile_99(&[], &after), None);
        after[10] = 99;
        after[30] = 1;
        let nanos = |exponent: u32| Some(Duration::from_nanos(1 << exponent));
        assert_eq!(percentile_99(&[], &after), nanos(10));
        after[30] = 2;
        assert_eq!(percentile_99(&[], &after), nanos(30));
        let before = after.clone();
        assert_eq!(percentile_99(&before, &after), None);
        after[12] += 1;
        assert_eq!(percentile_99(&before, &after), nanos(12));
    }

    #[test]
    fn the_process_knows_its_memory() {
        assert!(resident_memory().is_some_and(|bytes| bytes > 1 << 20));
    }
}
