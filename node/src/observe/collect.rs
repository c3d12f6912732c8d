//! Reads the state of a node when it is scraped.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use kelp_raft::{LogIndex, NodeId, RaftStatus, Role, SnapshotStatus};
use kelp_seams::Monotonic;
use kelp_wire::Status;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;

use super::metrics::{self, Family};
use super::requests::{BUCKETS, EXPONENT_MAX, EXPONENT_MIN, OPERATIONS};
use super::samples::{Samples, count, flag, number};
use super::{ConnectionMetrics, DoorReason, RequestMetrics, RespMetrics, Sources};
use crate::peer::{PeerHealth, RefusalReason};

mod heartbeats;
mod storage;

/// The only Raft group there is; its number is a label so that dashboards survive more of them.
const GROUP: &str = "0";

const ROLES: [(Role, &str); 5] = [
    (Role::Leader, "leader"),
    (Role::Follower, "follower"),
    (Role::Candidate, "candidate"),
    (Role::Learner, "learner"),
    (Role::Stopped, "stopped"),
];

/// Turns the sources' answers into families.
pub(super) struct NodeCollector {
    descriptions: Vec<Desc>,
    sources: Arc<dyn Sources>,
    requests: Arc<RequestMetrics>,
    resp: Arc<RespMetrics>,
    connections: Arc<ConnectionMetrics>,
    certificate: Arc<AtomicU64>,
    started: Monotonic,
}

impl NodeCollector {
    pub(super) fn new(
        sources: Arc<dyn Sources>,
        requests: Arc<RequestMetrics>,
        resp: Arc<RespMetrics>,
        connections: Arc<ConnectionMetrics>,
        certificate: Arc<AtomicU64>,
    ) -> Self {
        let describe = |family: &Family| {
            let labels = family.labels.iter().map(|label| (*label).to_owned());
            let (name, help) = (family.name.to_owned(), family.help.to_owned());
            let description = Desc::new(name, help, labels.collect(), HashMap::new());
            description.expect("names and labels are valid, as a test asserts")
        };
        Self {
            descriptions: metrics::ALL.iter().map(describe).collect(),
            started: sources.now(),
            sources,
            requests,
            resp,
            connections,
            certificate,
        }
    }

    fn node(&self, status: &RaftStatus) -> Vec<Samples> {
        let mut info = Samples::new(metrics::NODE_INFO);
        let node = status.node.to_string();
        info.add(&[env!("CARGO_PKG_VERSION"), &node], 1.0);
        let uptime = self.sources.now().saturating_duration_since(self.started);
        let not_after = self.certificate.load(Ordering::Relaxed);
        let not_after = (not_after != 0).then(|| number(not_after / 1000));
        vec![
            info,
            Samples::single(metrics::NODE_UPTIME, uptime.as_secs_f64()),
            Samples::single(metrics::NODE_CPU, cpu_time().as_secs_f64()),
            Samples::optional(metrics::CERTIFICATE_EXPIRY, not_after),
        ]
    }

    fn client(&self) -> Vec<Samples> {
        let mut counts = Samples::new(metrics::CLIENT_REQUESTS);
        let mut durations = Samples::new(metrics::CLIENT_REQUEST_DURATION);
        for row in 0..OPERATIONS {
            let operation = RequestMetrics::operation_name(row);
            let totals = self.requests.totals(row);
            for (status, total) in Status::ALL.iter().zip(totals.statuses) {
                counts.add(&[operation, status.name()], number(total));
            }
            let bounds = EXPONENT_MIN..=EXPONENT_MAX;
            let buckets = bounds.map(seconds_of_exponent).zip(totals.buckets);
            let sum = Duration::from_nanos(totals.sum_nanos).as_secs_f64();
            durations.add_histogram(&[operation], buckets, totals.buckets[BUCKETS - 1], sum);
        }
        vec![counts, durations]
    }

    fn connections(&self) -> Vec<Samples> {
        let connections = &self.connections;
        let gauge = |gauge: &AtomicUsize| count(gauge.load(Ordering::Relaxed));
        let mut open = Samples::new(metrics::CLIENT_CONNECTIONS);
        open.add(&["greeted"], gauge(connections.greeted()));
        open.add(&["new"], gauge(connections.strangers()));
        let mut refused = Samples::new(metrics::CLIENT_REFUSED);
        for reason in DoorReason::ALL {
            let refusals = connections.refused_count(reason);
            refused.add(&[reason.label()], number(refusals));
        }
        let held = gauge(connections.held_bytes());
        vec![
            open,
            refused,
            Samples::single(metrics::CLIENT_HELD_BYTES, held),
        ]
    }

    fn resp(&self) -> Vec<Samples> {
        let mut commands = Samples::new(metrics::RESP_COMMANDS);
        for (name, total) in self.resp.by_command() {
            commands.add(&[name], number(total));
        }
        let (totals, sum_nanos) = self.resp.durations();
        let bounds = EXPONENT_MIN..=EXPONENT_MAX;
        let buckets = bounds.map(seconds_of_exponent).zip(totals);
        let sum = Duration::from_nanos(sum_nanos).as_secs_f64();
        let mut durations = Samples::new(metrics::RESP_COMMAND_DURATION);
        durations.add_histogram(&[], buckets, totals[BUCKETS - 1], sum);
        vec![
            Samples::single(metrics::RESP_CONNECTIONS, count(self.resp.connections())),
            commands,
            Samples::single(metrics::RESP_ERRORS, number(self.resp.errors())),
            durations,
        ]
    }

    fn outbox(&self) -> Vec<Samples> {
        let outbox = self.sources.outbox();
        let unanswered = count(outbox.unanswered());
        vec![
            Samples::single(metrics::OUTBOX_UNANSWERED, unanswered),
            Samples::single(metrics::OUTBOX_SENT_AGAIN, number(outbox.sent_again())),
            Samples::single(metrics::PACKED_ENTRIES, number(outbox.packed_entries())),
            Samples::single(metrics::PACKED_COMMANDS, number(outbox.packed_commands())),
        ]
    }

    fn refusals(&self) -> Samples {
        let mut samples = Samples::new(metrics::PEER_REFUSALS);
        for reason in RefusalReason::ALL {
            let refusals = self.sources.peer_refusals(reason);
            samples.add(&[reason.label()], number(refusals));
        }
        samples
    }
}

impl Collector for NodeCollector {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let status = self.sources.raft();
        let mut samples = self.node(&status);
        samples.extend(self.client());
        samples.extend(self.connections());
        samples.extend(self.resp());
        samples.extend(self.outbox());
        let disk_free = self.sources.disk_free();
        samples.extend(storage::samples(&self.sources.storage(), disk_free));
        samples.extend(raft(&status));
        samples.extend(snapshots(&status.snapshots));
        samples.extend(peers(&self.sources.peers()));
        samples.push(self.refusals());
        samples.extend(heartbeats::samples(&self.sources.heartbeats()));
        samples.into_iter().map(Samples::finish).collect()
    }
}

fn raft(status: &RaftStatus) -> Vec<Samples> {
    let labelled = |family, value: Option<f64>| {
        let mut samples = Samples::new(family);
        if let Some(value) = value {
            samples.add(&[GROUP], value);
        }
        samples
    };
    let index = |index: Option<LogIndex>| index.map(|index| number(index.get()));
    let leader = status.leader.map_or(0, NodeId::get);
    let apply_lag = number(entries_between(status.applied, status.committed));
    let contact = status.leader_contact.map(|age| age.as_secs_f64());
    let mut roles = Samples::new(metrics::RAFT_ROLE);
    for (role, name) in ROLES {
        roles.add(&[GROUP, name], flag(status.role == role));
    }
    let voters = status
        .members
        .values()
        .filter(|member| member.voter)
        .count();
    let mut members = Samples::new(metrics::RAFT_MEMBERS);
    members.add(&[GROUP, "voter"], count(voters));
    members.add(&[GROUP, "learner"], count(status.members.len() - voters));
    let mut lags = Samples::new(metrics::RAFT_REPLICATION_LAG);
    for (peer, matched) in status.replication.iter().take(metrics::PEERS_MAX) {
        let lag = entries_between(*matched, status.last_log);
        lags.add(&[GROUP, &peer.to_string()], number(lag));
    }
    vec![
        labelled(metrics::RAFT_TERM, Some(number(status.term.get()))),
        labelled(metrics::RAFT_LEADER, Some(number(leader.into()))),
        roles,
        labelled(metrics::RAFT_LAST_LOG, index(status.last_log)),
        labelled(metrics::RAFT_COMMITTED, index(status.committed)),
        labelled(metrics::RAFT_APPLIED, index(status.applied)),
        labelled(metrics::RAFT_APPLY_LAG, Some(apply_lag)),
        labelled(metrics::RAFT_LEADER_CONTACT, contact),
        members,
        lags,
    ]
}

fn snapshots(status: &SnapshotStatus) -> Vec<Samples> {
    let of_group = |family, value: Option<u64>| {
        let mut samples = Samples::new(family);
        if let Some(value) = value {
            samples.add(&[GROUP], number(value));
        }
        samples
    };
    let mut bytes = Samples::new(metrics::RAFT_SNAPSHOT_BYTES);
    bytes.add(&[GROUP, "sent"], number(status.sent_bytes));
    bytes.add(&[GROUP, "received"], number(status.received_bytes));
    vec![
        of_group(metrics::RAFT_SNAPSHOT, status.snapshot.map(LogIndex::get)),
        of_group(metrics::RAFT_PURGED, status.purged.map(LogIndex::get)),
        of_group(metrics::RAFT_LOG_BYTES, Some(status.log_bytes)),
        of_group(metrics::RAFT_SNAPSHOTS_SENT, Some(status.sent)),
        of_group(metrics::RAFT_SNAPSHOTS_INSTALLED, Some(status.installed)),
        bytes,
    ]
}

/// Entries after `low` up to `high`. Index 0 is an entry, so "none" is one before it.
fn entries_between(low: Option<LogIndex>, high: Option<LogIndex>) -> u64 {
    let entries = |index: Option<LogIndex>| index.map_or(0, |index| index.get().saturating_add(1));
    entries(high).saturating_sub(entries(low))
}

fn peers(peers: &[PeerHealth]) -> Vec<Samples> {
    let mut connected = Samples::new(metrics::PEER_CONNECTED);
    let mut connections = Samples::new(metrics::PEER_CONNECTIONS);
    let mut last_heard = Samples::new(metrics::PEER_LAST_HEARD);
    let mut round_trip = Samples::new(metrics::PEER_ROUND_TRIP);
    let mut sent = Samples::new(metrics::PEER_SENT_BYTES);
    let mut received = Samples::new(metrics::PEER_RECEIVED_BYTES);
    let mut dials = Samples::new(metrics::PEER_DIALS);
    for health in peers.iter().take(metrics::PEERS_MAX) {
        let peer = health.node.to_string();
        connected.add(&[&peer], flag(health.connected));
        connections.add(&[&peer, "dialled"], count(health.dialled));
        connections.add(&[&peer, "accepted"], count(health.accepted));
        if let Some(age) = health.last_heard {
            last_heard.add(&[&peer], age.as_secs_f64());
        }
        if let Some(time) = health.round_trip {
            round_trip.add(&[&peer], time.as_secs_f64());
        }
        sent.add(&[&peer], number(health.sent_bytes));
        received.add(&[&peer], number(health.received_bytes));
        dials.add(&[&peer, "ok"], number(health.dials));
        dials.add(&[&peer, "failed"], number(health.dial_failures));
    }
    vec![
        connected,
        connections,
        last_heard,
        round_trip,
        sent,
        received,
        dials,
    ]
}

fn seconds_of_exponent(exponent: u32) -> f64 {
    Duration::from_nanos(1 << exponent).as_secs_f64()
}

/// Processor time of the process.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(seconds, nanos)
}
