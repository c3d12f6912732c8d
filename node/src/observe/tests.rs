use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kelp_raft::{LogIndex, Member, NodeId, Role, SnapshotStatus, Term};
use kelp_wire::{Opcode, Status};

use super::metrics::{ALL, Kind, PEERS_MAX};
use super::requests::OPERATIONS;
use super::*;
use crate::heartbeat::{HeartbeatState, Lost};

/// A leader of a group of many members, with a peer for each.
struct Busy {
    peers: u16,
    outbox: OutboxMetrics,
}

impl Sources for Busy {
    fn raft(&self) -> RaftStatus {
        let member = |number: u16| Member {
            name: format!("n{number}"),
            peer: String::new(),
            client: String::new(),
            http: String::new(),
            voter: number <= 3,
        };
        let peers = 2..self.peers + 2;
        RaftStatus {
            node: NodeId::new(1),
            role: Role::Leader,
            term: Term::new(7),
            leader: Some(NodeId::new(1)),
            leader_contact: Some(Duration::from_millis(20)),
            last_log: Some(LogIndex::new(100)),
            committed: Some(LogIndex::new(99)),
            applied: Some(LogIndex::new(90)),
            members: (1..self.peers + 2)
                .map(|number| (NodeId::new(number), member(number)))
                .collect(),
            replication: peers
                .map(|number| (NodeId::new(number), Some(LogIndex::new(60))))
                .collect(),
            snapshots: SnapshotStatus {
                snapshot: Some(LogIndex::new(80)),
                purged: Some(LogIndex::new(40)),
                log_bytes: 4_096,
                sent: 2,
                installed: 1,
                sent_bytes: 2_048,
                received_bytes: 1_024,
            },
        }
    }

    fn storage(&self) -> StorageMetrics {
        let mut metrics = StorageMetrics::default();
        metrics.wal_bytes = 12_345;
        metrics.wal_syncs = 6;
        metrics.wal_sync_time = Duration::from_secs(2);
        metrics.wal_sync_histogram = vec![0; 40];
        // Two syncs below 16 us, three of about a millisecond, one of half a minute.
        metrics.wal_sync_histogram[10] = 2;
        metrics.wal_sync_histogram[20] = 3;
        metrics.wal_sync_histogram[35] = 1;
        metrics.disk_full = true;
        metrics.memtables = 3;
        metrics.frozen_memtables = 2;
        metrics.flushes = 11;
        metrics.flush_bytes = 12;
        metrics.compactions = 13;
        metrics.compaction_written_bytes = 14;
        metrics.compaction_debt_bytes = 15;
        metrics.level_tables[1] = 16;
        metrics.level_bytes[6] = 17;
        metrics.block_cache_hits = 18;
        metrics.filter_false_positives = 19;
        metrics.stalls = 20;
        metrics
    }

    fn disk_free(&self) -> Option<u64> {
        Some(1 << 40)
    }

    fn peers(&self) -> Vec<PeerHealth> {
        let peers = 2..self.peers + 2;
        let health = |number| PeerHealth {
            node: NodeId::new(number),
            address: None,
            connected: true,
            dialled: 4,
            accepted: 3,
            last_heard: Some(Duration::from_millis(50)),
            round_trip: Some(Duration::from_micros(250)),
            last_error: None,
            sent_bytes: 1000,
            received_bytes: 2000,
            dials: 4,
            dial_failures: 1,
        };
        peers.map(health).collect()
    }

    fn peer_refusals(&self, reason: RefusalReason) -> u64 {
        reason as u64
    }

    fn heartbeats(&self) -> HeartbeatCounts {
        let peers = 2..self.peers + 2;
        let liveness = |number| PeerLiveness {
            node: NodeId::new(number),
            state: HeartbeatState::Blocked,
            age: Some(Duration::from_millis(40)),
            round_trip: Some(Duration::from_micros(250)),
            clock_offset_millis: Some(-5),
            lost: Some(Lost {
                received: 75,
                window: 100,
            }),
            lost_there: None,
            sent: 101,
            received: 99,
            told: None,
        };
        HeartbeatCounts {
            peers: peers.map(liveness).collect(),
            refused: vec![(RefusedHeartbeat::Replay, 3)],
            dropped: 4,
            telemetry: vec![("queue.depth".to_owned(), 2.5)],
            telemetry_datagrams: 6,
            telemetry_dropped: 1,
        }
    }

    fn outbox(&self) -> &OutboxMetrics {
        &self.outbox
    }

    fn now(&self) -> Monotonic {
        Monotonic::from_nanos(0)
    }
}

fn observer(peers: u16) -> Observer {
    let outbox = OutboxMetrics::default();
    outbox.set_unanswered(5);
    outbox.count_sent_again(2);
    outbox.count_packed(30);
    outbox.count_packed(12);
    Observer::over(Arc::new(Busy { peers, outbox }))
}

fn assert_line(text: &str, expected: &str) {
    let found = text.lines().any(|line| line == expected);
    let name = expected.split(['{', ' ']).next().unwrap();
    let similar: Vec<_> = text.lines().filter(|line| line.starts_with(name)).collect();
    assert!(found, "no line {expected:?}; there are {similar:#?}");
}

#[test]
fn connections_and_writes_under_way_are_shown() {
    let observer = observer(2);
    let connections = observer.connections();
    connections.greeted().store(3, Ordering::Relaxed);
    connections.strangers().store(1, Ordering::Relaxed);
    connections.held_bytes().store(4_096, Ordering::Relaxed);
    connections.refused(DoorReason::Full);
    let text = observer.render();
    for line in [
        "kelp_client_connections{state=\"greeted\"} 3",
        "kelp_client_connections{state=\"new\"} 1",
        "kelp_client_held_bytes 4096",
        "kelp_client_refused_connections_total{reason=\"full\"} 1",
        "kelp_client_refused_connections_total{reason=\"crowded\"} 0",
        "kelp_proposer_unanswered_batches 5",
        "kelp_proposer_sent_again_batches_total 2",
        "kelp_proposer_packed_entries_total 2",
        "kelp_proposer_packed_commands_total 42",
    ] {
        assert_line(&text, line);
    }
}

#[test]
fn requests_are_counted_by_operation_and_status() {
    let observer = observer(2);
    let requests = observer.requests();
    requests.request_finished(Opcode::Get, Status::Ok, Duration::from_micros(10));
    requests.request_finished(Opcode::Get, Status::NotFound, Duration::from_millis(1));
    requests.request_finished(Opcode::Get, Status::Ok, Duration::from_mins(1));
    requests.refused(Status::BadRequest);
    let text = observer.render();
    let count = "kelp_client_requests_total";
    assert_line(&text, &format!("{count}{{op=\"get\",status=\"ok\"}} 2"));
    assert_line(
        &text,
        &format!("{count}{{op=\"get\",status=\"not_found\"}} 1"),
    );
    assert_line(&text, &format!("{count}{{op=\"put\",status=\"ok\"}} 0"));
    assert_line(
        &text,
        &format!("{count}{{op=\"unknown\",status=\"bad_request\"}} 1"),
    );
    let duration = "kelp_client_request_duration_seconds";
    assert_line(
        &text,
        &format!("{duration}_bucket{{op=\"get\",le=\"0.000016384\"}} 1"),
    );
    assert_line(
        &text,
        &format!("{duration}_bucket{{op=\"get\",le=\"0.001048576\"}} 2"),
    );
    assert_line(
        &text,
        &format!("{duration}_bucket{{op=\"get\",le=\"8.589934592\"}} 2"),
    );
    assert_line(
        &text,
        &format!("{duration}_bucket{{op=\"get\",le=\"+Inf\"}} 3"),
    );
    assert_line(&text, &format!("{duration}_count{{op=\"get\"}} 3"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn counts_of_many_threads_are_summed() {
    let requests = Arc::new(RequestMetrics::default());
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..12 {
        let requests = Arc::clone(&requests);
        tasks.spawn(async move {
            for _ in 0..1000 {
                requests.request_finished(Opcode::Put, Status::Ok, Duration::from_micros(100));
            }
        });
    }
    tasks.join_all().await;
    let rows = (0..OPERATIONS).map(|row| requests.totals(row));
    let total: u64 = rows.map(|totals| totals.statuses.iter().sum::<u64>()).sum();
    assert_eq!(total, 12_000);
}

#[test]
fn state_of_the_parts_is_read_at_the_scrape() {
    let observer = observer(2);
    observer.set_certificate_expiry(WallMillis::new(1_767_225_600_000));
    let text = observer.render();
    for line in [
        "kelp_raft_term{group=\"0\"} 7",
        "kelp_raft_leader_node_id{group=\"0\"} 1",
        "kelp_raft_role{group=\"0\",role=\"leader\"} 1",
        "kelp_raft_role{group=\"0\",role=\"follower\"} 0",
        "kelp_raft_committed_index{group=\"0\"} 99",
        "kelp_raft_apply_lag_entries{group=\"0\"} 9",
        "kelp_raft_leader_contact_seconds{group=\"0\"} 0.02",
        "kelp_raft_members{group=\"0\",role=\"voter\"} 3",
        "kelp_raft_replication_lag_entries{group=\"0\",peer=\"2\"} 40",
        "kelp_raft_snapshot_index{group=\"0\"} 80",
        "kelp_raft_purged_index{group=\"0\"} 40",
        "kelp_raft_log_bytes{group=\"0\"} 4096",
        "kelp_raft_snapshots_sent_total{group=\"0\"} 2",
        "kelp_raft_snapshots_installed_total{group=\"0\"} 1",
        "kelp_raft_snapshot_bytes_total{group=\"0\",direction=\"received\"} 1024",
        "kelp_peer_connected{peer=\"3\"} 1",
        "kelp_peer_connections{peer=\"3\",direction=\"accepted\"} 3",
        "kelp_peer_round_trip_seconds{peer=\"2\"} 0.00025",
        "kelp_peer_dials_total{peer=\"2\",outcome=\"failed\"} 1",
        "kelp_peer_refusals_total{reason=\"busy\"} 7",
        "kelp_storage_wal_written_bytes_total 12345",
        "kelp_storage_wal_sync_duration_seconds_bucket{le=\"0.000016384\"} 2",
        "kelp_storage_wal_sync_duration_seconds_bucket{le=\"0.001048576\"} 5",
        "kelp_storage_wal_sync_duration_seconds_bucket{le=\"8.589934592\"} 5",
        "kelp_storage_wal_sync_duration_seconds_bucket{le=\"+Inf\"} 6",
        "kelp_storage_wal_sync_duration_seconds_sum 2",
        "kelp_storage_disk_full 1",
        "kelp_storage_disk_free_bytes 1099511627776",
        "kelp_storage_memtables{state=\"active\"} 1",
        "kelp_storage_memtables{state=\"frozen\"} 2",
        "kelp_storage_flushes_total 11",
        "kelp_storage_flush_bytes_total 12",
        "kelp_storage_compactions_total 13",
        "kelp_storage_compaction_written_bytes_total 14",
        "kelp_storage_compaction_debt_bytes 15",
        "kelp_storage_level_tables{level=\"1\"} 16",
        "kelp_storage_level_bytes{level=\"6\"} 17",
        "kelp_storage_block_cache_hits_total 18",
        "kelp_storage_filter_false_positives_total 19",
        "kelp_storage_stalls_total 20",
        "kelp_node_certificate_expiry_timestamp_seconds 1767225600",
    ] {
        assert_line(&text, line);
    }
}

/// Has nothing but a given Raft status.
struct Fixed(RaftStatus, OutboxMetrics);

impl Sources for Fixed {
    fn raft(&self) -> RaftStatus {
        self.0.clone()
    }
    fn storage(&self) -> StorageMetrics {
        StorageMetrics::default()
    }
    fn peers(&self) -> Vec<PeerHealth> {
        Vec::new()
    }
    fn peer_refusals(&self, _: RefusalReason) -> u64 {
        0
    }
    fn outbox(&self) -> &OutboxMetrics {
        &self.1
    }
    fn now(&self) -> Monotonic {
        Monotonic::default()
    }
}

#[test]
fn entry_zero_is_an_entry() {
    let mut status = Busy {
        peers: 1,
        outbox: OutboxMetrics::default(),
    }
    .raft();
    status.replication = BTreeMap::from([(NodeId::new(2), None)]);
    status.last_log = Some(LogIndex::new(0));
    let text = Observer::over(Arc::new(Fixed(status, OutboxMetrics::default()))).render();
    assert_line(
        &text,
        "kelp_raft_replication_lag_entries{group=\"0\",peer=\"2\"} 1",
    );
    assert_line(&text, "kelp_storage_wal_sync_duration_seconds_count 0");
}

#[test]
fn heartbeats_and_telemetry_are_shown() {
    let text = observer(2).render();
    for line in [
        "kelp_heartbeat_sent_total{peer=\"2\"} 101",
        "kelp_heartbeat_received_total{peer=\"3\"} 99",
        "kelp_heartbeat_refused_total{reason=\"replay\"} 3",
        "kelp_heartbeat_lost_ratio{peer=\"2\"} 0.25",
        "kelp_heartbeat_age_seconds{peer=\"2\"} 0.04",
        "kelp_heartbeat_round_trip_seconds{peer=\"2\"} 0.00025",
        "kelp_heartbeat_clock_offset_seconds{peer=\"2\"} -0.005",
        "kelp_heartbeat_blocked{peer=\"2\"} 1",
        "kelp_heartbeat_dropped_total 4",
        "kelp_telemetry_datagrams_total 6",
        "kelp_telemetry_dropped_total 1",
        "kelp_telemetry_value{name=\"queue.depth\"} 2.5",
    ] {
        assert_line(&text, line);
    }
}

#[test]
fn names_follow_the_rules() {
    let parts = [
        "client",
        "resp",
        "proposer",
        "storage",
        "raft",
        "peer",
        "heartbeat",
        "telemetry",
        "node",
    ];
    let units = [
        "seconds", "bytes", "entries", "index", "total", "id", "info", "ratio",
    ];
    let countable = [
        "batches",
        "files",
        "members",
        "connections",
        "term",
        "role",
        "connected",
        "memtables",
        "tables",
        "keyspaces",
    ];
    let flags = ["disk_full", "poisoned", "blocked"];
    // Whoever sends them gives them their unit.
    let foreign = ["kelp_telemetry_value"];
    let mut seen = BTreeSet::new();
    for family in ALL {
        let name = family.name;
        assert!(seen.insert(name), "{name} appears twice");
        let mut words = name.split('_');
        assert_eq!(words.next(), Some("kelp"), "{name}");
        assert!(
            words.next().is_some_and(|part| parts.contains(&part)),
            "{name}"
        );
        let ends = |suffixes: &[&str]| suffixes.iter().any(|suffix| name.ends_with(suffix));
        assert!(
            ends(&units) || ends(&countable) || ends(&flags) || foreign.contains(&name),
            "{name} has no unit"
        );
        assert_eq!(
            name.ends_with("_total"),
            family.kind == Kind::Counter,
            "{name}"
        );
        assert!(
            !ends(&["_count", "_sum", "_bucket"]),
            "{name} ends as histogram parts do"
        );
        assert!(
            family.help.ends_with('.') && family.help.len() > 20,
            "{name} lacks help"
        );
        let lower = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
        assert!(name.bytes().all(lower), "{name}");
        assert!(
            family.labels.iter().all(|label| label.bytes().all(lower)),
            "{name}"
        );
    }
}

#[test]
fn series_are_bounded_however_many_peers_there_are() {
    let most = u16::try_from(PEERS_MAX).unwrap() + 100;
    let text = observer(most).render();
    let series = text.lines().filter(|line| !line.starts_with('#')).count();
    assert!(series < 1700, "{series} series");
    assert!(
        series > 900,
        "{series} series: do the families still export?"
    );
}

#[test]
fn every_family_is_exported() {
    let observer = observer(1);
    observer.set_certificate_expiry(WallMillis::new(1000));
    let text = observer.render();
    for family in ALL {
        let header = format!("# HELP {} ", family.name);
        let absent_here = family.name == "kelp_storage_wal_sync_age_seconds";
        assert_eq!(text.contains(&header), !absent_here, "{}", family.name);
    }
}

#[test]
fn log_filters_are_checked() {
    assert!(logs::check_filter("").is_ok());
    assert!(logs::check_filter("kelp_node::peer=debug,warn").is_ok());
    assert!(logs::check_filter("kelp=loudly").is_err());
}
