//! What a node knows about its peers: addresses, connections and traffic, shared by both sides of
//! the links.
//!
//! Counters are plain atomics, written where the bytes move and read by status pages and metrics.
//! Nothing here decides anything about Raft.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kelp_raft::{NodeId, PeerClass};
use kelp_seams::{Clock, Monotonic};
use kelp_wire::HeartbeatKeyId;

use super::secret::{HeldSecret, LinkSecret, SecretSlot};

/// Peers that a node keeps records of. Ids come from certificates, so only a rogue authority could
/// make more.
const PEERS_MAX: usize = 1024;

/// A stamp or round trip that was never taken.
const NEVER: u64 = u64::MAX;

/// How a peer is doing, seen from this node.
#[derive(Clone, Debug)]
pub struct PeerHealth {
    /// The peer.
    pub node: NodeId,
    /// Where it is dialled; `None` while only the peer has dialled us.
    pub address: Option<String>,
    /// Some connection with it is open, in either direction.
    pub connected: bool,
    /// Open connections that this node dialled.
    pub dialled: usize,
    /// Open connections that the peer dialled.
    pub accepted: usize,
    /// How long ago anything was heard from it.
    pub last_heard: Option<Duration>,
    /// The last measured round trip.
    pub round_trip: Option<Duration>,
    /// Why the last dial or connection failed; cleared by the next success.
    pub last_error: Option<String>,
    /// Bytes of frames sent to it since start.
    pub sent_bytes: u64,
    /// Bytes of frames received from it since start.
    pub received_bytes: u64,
    /// Connections to it that were dialled with success since start.
    pub dials: u64,
    /// Dials that failed since start.
    pub dial_failures: u64,
}

/// Why an incoming peer connection was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RefusalReason {
    /// The first byte is not that of TLS.
    Plaintext,
    /// TLS failed: no certificate, an expired one, or one of another authority.
    Handshake,
    /// The hello is malformed or of another version.
    Hello,
    /// The hello names another cluster.
    Cluster,
    /// The hello is meant for another node, or comes from this one.
    Target,
    /// The certificate is not that of the node that the hello names.
    Identity,
    /// Handshake or hello took too long.
    Slow,
    /// Too many connections.
    Busy,
    /// The peer's data directory is not the one that it announced.
    Emptied,
}

impl RefusalReason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Self; 9] = [
        Self::Plaintext,
        Self::Handshake,
        Self::Hello,
        Self::Cluster,
        Self::Target,
        Self::Identity,
        Self::Slow,
        Self::Busy,
        Self::Emptied,
    ];

    /// The reason as a metric label.
    pub fn label(self) -> &'static str {
        match self {
            Self::Plaintext => "plaintext",
            Self::Handshake => "handshake",
            Self::Hello => "hello",
            Self::Cluster => "cluster",
            Self::Target => "target",
            Self::Identity => "identity",
            Self::Emptied => "emptied",
            Self::Slow => "slow",
            Self::Busy => "busy",
        }
    }
}

/// The records of all peers, and of connections that nobody could be held responsible for.
pub struct PeerBook {
    clock: Arc<dyn Clock>,
    peers: Mutex<BTreeMap<NodeId, Arc<PeerRecord>>>,
    refusals: [AtomicU64; RefusalReason::ALL.len()],
}

impl PeerBook {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            peers: Mutex::default(),
            refusals: Default::default(),
        }
    }

    /// The health of every known peer, by node id.
    pub fn health(&self) -> Vec<PeerHealth> {
        let now = self.clock.monotonic();
        let peers = lock(&self.peers);
        peers
            .iter()
            .map(|(node, record)| record.health(*node, now))
            .collect()
    }

    /// How often incoming connections were refused for `reason`.
    pub fn refusals(&self, reason: RefusalReason) -> u64 {
        self.refusals[reason as usize].load(Ordering::Relaxed)
    }

    pub(super) fn count_refusal(&self, reason: RefusalReason) {
        self.refusals[reason as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// The record of `node`, made if absent; `None` when there are too many.
    pub(super) fn record(&self, node: NodeId) -> Option<Arc<PeerRecord>> {
        let mut peers = lock(&self.peers);
        if peers.len() >= PEERS_MAX && !peers.contains_key(&node) {
            return None;
        }
        let record = peers
            .entry(node)
            .or_insert_with(|| Arc::new(PeerRecord::new(Arc::clone(&self.clock))));
        Some(Arc::clone(record))
    }

    pub(super) fn forget(&self, node: NodeId) {
        lock(&self.peers).remove(&node);
    }

    /// The secret of the newest connection that this node dialled to `node`, for sealing.
    pub(crate) fn dialled_secret(&self, node: NodeId) -> Option<Arc<LinkSecret>> {
        let record = self.known(node)?;
        record.dialled_secrets.newest(self.clock.monotonic())
    }

    /// Whether the connection of that secret is open.
    pub(crate) fn holds_dialled_secret(&self, node: NodeId) -> bool {
        self.known(node)
            .is_some_and(|record| record.dialled_secrets.is_open())
    }

    /// The secret of this name among those of connections that `node` dialled, for checking.
    pub(crate) fn accepted_secret(
        &self,
        node: NodeId,
        id: HeartbeatKeyId,
    ) -> Option<Arc<LinkSecret>> {
        let record = self.known(node)?;
        record.accepted_secrets.find(id, self.clock.monotonic())
    }

    /// Where `node` is dialled.
    pub(crate) fn address(&self, node: NodeId) -> Option<String> {
        self.known(node)?.address()
    }

    /// The record of a node, if there is one.
    fn known(&self, node: NodeId) -> Option<Arc<PeerRecord>> {
        lock(&self.peers).get(&node).cloned()
    }
}

/// What is known about one peer.
pub(super) struct PeerRecord {
    clock: Arc<dyn Clock>,
    address: Mutex<Option<String>>,
    last_error: Mutex<Option<String>>,
    heard_nanos: AtomicU64,
    round_trip_nanos: AtomicU64,
    dialled_secrets: Arc<SecretSlot>,
    accepted_secrets: Arc<SecretSlot>,
    dialled: AtomicUsize,
    accepted: AtomicUsize,
    pub(super) sent_bytes: AtomicU64,
    pub(super) received_bytes: AtomicU64,
    dials: AtomicU64,
    dial_failures: AtomicU64,
}

impl PeerRecord {
    fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            address: Mutex::default(),
            last_error: Mutex::default(),
            heard_nanos: AtomicU64::new(NEVER),
            round_trip_nanos: AtomicU64::new(NEVER),
            dialled_secrets: Arc::default(),
            accepted_secrets: Arc::default(),
            dialled: AtomicUsize::default(),
            accepted: AtomicUsize::default(),
            sent_bytes: AtomicU64::default(),
            received_bytes: AtomicU64::default(),
            dials: AtomicU64::default(),
            dial_failures: AtomicU64::default(),
        }
    }

    pub(super) fn address(&self) -> Option<String> {
        lock(&self.address).clone()
    }

    /// Sets the address and tells whether it is a new one.
    pub(super) fn set_address(&self, address: String) -> bool {
        let mut held = lock(&self.address);
        let changed = held.as_ref() != Some(&address);
        *held = Some(address);
        changed
    }

    /// Notes that bytes arrived from the peer just now.
    pub(super) fn heard(&self) {
        let now = self.clock.monotonic().as_nanos();
        self.heard_nanos.store(now, Ordering::Relaxed);
    }

    pub(super) fn set_round_trip(&self, round_trip: Duration) {
        let nanos = u64::try_from(round_trip.as_nanos()).unwrap_or(NEVER);
        self.round_trip_nanos.store(nanos, Ordering::Relaxed);
    }

    pub(super) fn dial_failed(&self, reason: &str) {
        self.dial_failures.fetch_add(1, Ordering::Relaxed);
        *lock(&self.last_error) = Some(reason.to_owned());
    }

    /// Counts a dialled connection for as long as the guard lives.
    pub(super) fn dialled(self: &Arc<Self>, class: PeerClass) -> OpenConnection {
        self.dials.fetch_add(1, Ordering::Relaxed);
        *lock(&self.last_error) = None;
        self.heard();
        OpenConnection::new(self, Direction::Dialled, class)
    }

    /// Counts an accepted connection for as long as the guard lives.
    pub(super) fn accepted(self: &Arc<Self>, class: PeerClass) -> OpenConnection {
        self.heard();
        OpenConnection::new(self, Direction::Accepted, class)
    }

    /// Keeps the secret of a dialled connection for as long as the guard lives.
    pub(super) fn hold_dialled_secret(&self, secret: LinkSecret) -> HeldSecret {
        HeldSecret::new(&self.dialled_secrets, secret, &self.clock)
    }

    /// Keeps the secret of an accepted connection for as long as the guard lives.
    pub(super) fn hold_accepted_secret(&self, secret: LinkSecret) -> HeldSecret {
        HeldSecret::new(&self.accepted_secrets, secret, &self.clock)
    }

    fn health(&self, node: NodeId, now: Monotonic) -> PeerHealth {
        let taken = |stamp: &AtomicU64| {
            let nanos = stamp.load(Ordering::Relaxed);
            (nanos != NEVER).then_some(nanos)
        };
        let heard = taken(&self.heard_nanos).map(Monotonic::from_nanos);
        let dialled = self.dialled.load(Ordering::Relaxed);
        let accepted = self.accepted.load(Ordering::Relaxed);
        PeerHealth {
            node,
            address: self.address(),
            connected: dialled + accepted > 0,
            dialled,
            accepted,
            last_heard: heard.map(|heard| now.saturating_duration_since(heard)),
            round_trip: taken(&self.round_trip_nanos).map(Duration::from_nanos),
            last_error: lock(&self.last_error).clone(),
            sent_bytes: self.sent_bytes.load(Ordering::Relaxed),
            received_bytes: self.received_bytes.load(Ordering::Relaxed),
            dials: self.dials.load(Ordering::Relaxed),
            dial_failures: self.dial_failures.load(Ordering::Relaxed),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Dialled,
    Accepted,
}

/// Counts one open connection in its peer's record, and logs its beginning and end.
pub(super) struct OpenConnection {
    record: Arc<PeerRecord>,
    direction: Direction,
    class: PeerClass,
}

impl OpenConnection {
    fn new(record: &Arc<PeerRecord>, direction: Direction, class: PeerClass) -> Self {
        let open = Self {
            record: Arc::clone(record),
            direction,
            class,
        };
        open.counter().fetch_add(1, Ordering::Relaxed);
        tracing::debug!(?direction, ?class, "peer connection opened");
        open
    }

    /// Records why the connection ended.
    pub(super) fn failed(&self, reason: &str) {
        *lock(&self.record.last_error) = Some(reason.to_owned());
    }

    fn counter(&self) -> &AtomicUsize {
        match self.direction {
            Direction::Dialled => &self.record.dialled,
            Direction::Accepted => &self.record.accepted,
        }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.counter().fetch_sub(1, Ordering::Relaxed);
        let (direction, class) = (self.direction, self.class);
        tracing::debug!(?direction, ?class, "peer connection closed");
    }
}

/// Locks without regard to poison: every value behind these locks is whole between statements.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
