//! What a node shows of itself: metrics and logs.
//!
//! Hot paths count into plain atomics ([`RequestMetrics`]); everything else is read from its owner
//! when Prometheus asks (`collect`), so a metric that nobody scrapes costs nothing. Each node has
//! a registry of its own, because tests run several nodes in one process. Every name and its help
//! text stands in [`metrics`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kelp_raft::{Raft, RaftStatus};
use kelp_seams::{Clock, Monotonic, WallMillis};
use kelp_storage::{Database, StorageMetrics};
use prometheus::process_collector::ProcessCollector;
use prometheus::{Registry, TextEncoder};

use crate::heartbeat::{Heartbeats, PeerLiveness, RefusedHeartbeat};
use crate::peer::{PeerBook, PeerHealth, RefusalReason};

mod collect;
pub mod logs;
pub mod metrics;
mod ports;
mod requests;
mod resp;
mod samples;
#[cfg(test)]
mod tests;

pub use ports::{ConnectionMetrics, DoorReason, OutboxMetrics};
pub use requests::RequestMetrics;
pub use resp::RespMetrics;

/// The metrics of one node. Cheap to clone.
#[derive(Clone)]
pub struct Observer {
    inner: Arc<Inner>,
}

struct Inner {
    registry: Registry,
    requests: Arc<RequestMetrics>,
    resp: Arc<RespMetrics>,
    connections: Arc<ConnectionMetrics>,
    certificate: Arc<AtomicU64>,
}

/// Where the values come from that are read at each scrape.
pub(crate) trait Sources: Send + Sync + 'static {
    fn raft(&self) -> RaftStatus;
    fn storage(&self) -> StorageMetrics;
    fn peers(&self) -> Vec<PeerHealth>;
    fn peer_refusals(&self, reason: RefusalReason) -> u64;
    fn heartbeats(&self) -> HeartbeatCounts {
        HeartbeatCounts::default()
    }
    fn outbox(&self) -> &OutboxMetrics;
    /// Bytes that the disk of the data directory has left; asked of nobody who may hang.
    fn disk_free(&self) -> Option<u64> {
        None
    }
    /// Now, on the clock that began at [`Observer`]'s start.
    fn now(&self) -> Monotonic;
}

/// What is exported of heartbeats and telemetry.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeartbeatCounts {
    pub(crate) peers: Vec<PeerLiveness>,
    pub(crate) refused: Vec<(RefusedHeartbeat, u64)>,
    pub(crate) dropped: u64,
    pub(crate) telemetry: Vec<(String, f64)>,
    pub(crate) telemetry_datagrams: u64,
    pub(crate) telemetry_dropped: u64,
}

impl HeartbeatCounts {
    fn of(heartbeats: &Heartbeats) -> Self {
        let refused = RefusedHeartbeat::ALL.into_iter();
        Self {
            peers: heartbeats.peers(),
            refused: refused
                .map(|reason| (reason, heartbeats.refused(reason)))
                .collect(),
            dropped: heartbeats.dropped(),
            telemetry: heartbeats.telemetry(),
            telemetry_datagrams: heartbeats.gauges().datagrams(),
            telemetry_dropped: heartbeats.gauges().dropped(),
        }
    }
}

struct NodeSources {
    raft: Raft,
    database: Database,
    book: Arc<PeerBook>,
    heartbeats: Arc<Heartbeats>,
    outbox: Arc<OutboxMetrics>,
    clock: Arc<dyn Clock>,
}

impl Sources for NodeSources {
    fn raft(&self) -> RaftStatus {
        self.raft.status()
    }

    fn storage(&self) -> StorageMetrics {
        self.database.metrics()
    }

    fn peers(&self) -> Vec<PeerHealth> {
        self.book.health()
    }

    fn peer_refusals(&self, reason: RefusalReason) -> u64 {
        self.book.refusals(reason)
    }

    fn heartbeats(&self) -> HeartbeatCounts {
        HeartbeatCounts::of(&self.heartbeats)
    }

    fn outbox(&self) -> &OutboxMetrics {
        &self.outbox
    }

    fn disk_free(&self) -> Option<u64> {
        self.heartbeats.disk_free_bytes()
    }

    fn now(&self) -> Monotonic {
        self.clock.monotonic()
    }
}

impl Observer {
    /// Observes a node made of these parts.
    pub(crate) fn new(
        raft: &Raft,
        database: &Database,
        links: &crate::peer::PeerLinks,
        heartbeats: Arc<Heartbeats>,
        outbox: Arc<OutboxMetrics>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let sources = NodeSources {
            raft: raft.clone(),
            database: database.clone(),
            book: links.book(),
            heartbeats,
            outbox,
            clock,
        };
        let observer = Self::over(Arc::new(sources));
        let process = ProcessCollector::for_self();
        let registered = observer.inner.registry.register(Box::new(process));
        registered.expect("no family of ours begins with process_");
        observer
    }

    /// Observes anything that answers like a node.
    pub(crate) fn over(sources: Arc<dyn Sources>) -> Self {
        let registry = Registry::new();
        let requests = Arc::new(RequestMetrics::default());
        let resp = Arc::new(RespMetrics::default());
        let connections = Arc::new(ConnectionMetrics::default());
        let certificate = Arc::new(AtomicU64::new(0));
        let collector = collect::NodeCollector::new(
            sources,
            Arc::clone(&requests),
            Arc::clone(&resp),
            Arc::clone(&connections),
            Arc::clone(&certificate),
        );
        let registered = registry.register(Box::new(collector));
        registered.expect("family names are distinct, as a test asserts");
        Self {
            inner: Arc::new(Inner {
                registry,
                requests,
                resp,
                connections,
                certificate,
            }),
        }
    }

    /// Where the client port counts its connections and what they hold.
    pub fn connections(&self) -> Arc<ConnectionMetrics> {
        Arc::clone(&self.inner.connections)
    }

    /// Where the client port counts its requests.
    pub fn requests(&self) -> Arc<RequestMetrics> {
        Arc::clone(&self.inner.requests)
    }

    /// Where the Redis port counts its commands.
    pub fn resp(&self) -> Arc<RespMetrics> {
        Arc::clone(&self.inner.resp)
    }

    /// Tells when the node's certificate expires, so that an alert can warn of it.
    pub fn set_certificate_expiry(&self, not_after: WallMillis) {
        let certificate = &self.inner.certificate;
        certificate.store(not_after.get(), Ordering::Relaxed);
    }

    /// All metrics in Prometheus' text format.
    pub fn render(&self) -> String {
        let families = self.inner.registry.gather();
        match TextEncoder::new().encode_to_string(&families) {
            Ok(text) => text,
            Err(error) => {
                tracing::error!(%error, "metrics cannot be rendered");
                String::new()
            }
        }
    }
}
