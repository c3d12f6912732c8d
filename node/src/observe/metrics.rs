//! Every metric of a node: name, help text, kind and labels.
//!
//! Names are `kelp_<part>_<noun>_<unit>[_total]` in base units. Labels come from closed sets, or
//! are node ids, of which at most [`PEERS_MAX`] are exported. Dashboards and alert rules rely on
//! these names; changing one is a change for every operator.

/// Peers that are exported with their id. The largest groups in use have a dozen members.
pub const PEERS_MAX: usize = 64;

/// What a family's values mean over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows, from 0 at the start of the process.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts by upper bound, with sum and count.
    Histogram,
}

/// One metric family.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// The full name.
    pub name: &'static str,
    /// What it counts, as a sentence.
    pub help: &'static str,
    /// How it behaves.
    pub kind: Kind,
    /// Label names, in the order in which values are given.
    pub labels: &'static [&'static str],
}

macro_rules! families {
    ($($constant:ident = $kind:ident $name:literal [$($label:literal),*] $help:literal;)*) => {
        $(
            #[doc = $help]
            pub const $constant: Family = Family {
                name: $name,
                help: $help,
                kind: Kind::$kind,
                labels: &[$($label),*],
            };
        )*

        /// All families, as they are registered.
        pub const ALL: &[Family] = &[$($constant),*];
    };
}

families! {
    CLIENT_REQUESTS = Counter "kelp_client_requests_total" ["op", "status"]
        "Requests answered on the client port, by operation and status.";
    CLIENT_REQUEST_DURATION = Histogram "kelp_client_request_duration_seconds" ["op"]
        "Time from reading a request to queuing its answer.";
    CLIENT_CONNECTIONS = Gauge "kelp_client_connections" ["state"]
        "Open client connections, by whether they have said hello (greeted) or not (new).";
    CLIENT_REFUSED = Counter "kelp_client_refused_connections_total" ["reason"]
        "Client connections that were turned away, by reason.";
    CLIENT_HELD_BYTES = Gauge "kelp_client_held_bytes" []
        "Bytes that client connections hold for requests, replies and half-read frames.";

    RESP_CONNECTIONS = Gauge "kelp_resp_connections" []
        "Open connections of Redis clients; they count as greeted client connections, too.";
    RESP_COMMANDS = Counter "kelp_resp_commands_total" ["command"]
        "Commands answered on the Redis port, by name; unknown ones together.";
    RESP_ERRORS = Counter "kelp_resp_errors_total" []
        "Error replies on the Redis port.";
    RESP_COMMAND_DURATION = Histogram "kelp_resp_command_duration_seconds" []
        "Time from reading a command to queuing its reply.";

    OUTBOX_UNANSWERED = Gauge "kelp_proposer_unanswered_batches" []
        "Sub-batches of this node's writes that have been closed and not answered yet.";
    OUTBOX_SENT_AGAIN = Counter "kelp_proposer_sent_again_batches_total" []
        "Sub-batches that were handed to a leader again, after a broken link or another leader.";
    PACKED_ENTRIES = Counter "kelp_proposer_packed_entries_total" []
        "Log entries that this node packed for Raft, as the leader or in the belief to be it.";
    PACKED_COMMANDS = Counter "kelp_proposer_packed_commands_total" []
        "Commands in the log entries that this node packed for Raft.";

    WAL_WRITTEN_BYTES = Counter "kelp_storage_wal_written_bytes_total" []
        "Bytes written to the write-ahead log.";
    WAL_FRAMES = Counter "kelp_storage_wal_frames_total" []
        "Frames written to the write-ahead log.";
    WAL_GROUPS = Counter "kelp_storage_wal_groups_total" []
        "Groups of frames written to the write-ahead log with one write each.";
    WAL_SYNC_DURATION = Histogram "kelp_storage_wal_sync_duration_seconds" []
        "Time of each sync of the write-ahead log.";
    WAL_SYNC_RUNNING = Gauge "kelp_storage_wal_sync_running_seconds" []
        "How long the sync that runs now has been running; 0 when none runs.";
    WAL_SYNC_AGE = Gauge "kelp_storage_wal_sync_age_seconds" []
        "How long ago the last sync of the write-ahead log ended; absent before the first.";
    WAL_QUEUED_BYTES = Gauge "kelp_storage_wal_queued_bytes" []
        "Bytes that wait to be written to the write-ahead log.";
    WAL_FILES = Gauge "kelp_storage_wal_files" []
        "Files of the write-ahead log that are still needed.";
    MEMTABLE_BYTES = Gauge "kelp_storage_memtable_bytes" []
        "Estimated memory of all memtables.";
    MEMTABLE_ENTRIES = Gauge "kelp_storage_memtable_entries" []
        "Versions of keys in all memtables.";
    MEMTABLES = Gauge "kelp_storage_memtables" ["state"]
        "Memtables that hold something: active ones take writes, frozen ones wait for a flush.";
    FLUSHES = Counter "kelp_storage_flushes_total" []
        "Flushes of memtables to tables.";
    FLUSH_BYTES = Counter "kelp_storage_flush_bytes_total" []
        "Bytes of the tables that flushes wrote.";
    FLUSH_FAILURES = Counter "kelp_storage_flush_failures_total" []
        "Flushes that failed and were tried again.";
    STALLS = Counter "kelp_storage_stalls_total" []
        "How often writes had to wait for room in memtables or in level 0.";

    COMPACTIONS = Counter "kelp_storage_compactions_total" []
        "Compactions that were installed.";
    COMPACTION_READ_BYTES = Counter "kelp_storage_compaction_read_bytes_total" []
        "Bytes of the tables that compactions read.";
    COMPACTION_WRITTEN_BYTES = Counter "kelp_storage_compaction_written_bytes_total" []
        "Bytes of the tables that compactions wrote.";
    COMPACTION_FAILURES = Counter "kelp_storage_compaction_failures_total" []
        "Compactions that failed; they are tried again, unless an input is corrupt.";
    COMPACTION_HALTED = Gauge "kelp_storage_compaction_halted_keyspaces" []
        "Keyspaces whose compaction has stopped at a corrupt table.";
    COMPACTION_DEBT = Gauge "kelp_storage_compaction_debt_bytes" []
        "Bytes that compaction must still move until all levels are within their limits.";
    LEVEL_TABLES = Gauge "kelp_storage_level_tables" ["level"]
        "Tables of each level.";
    LEVEL_BYTES = Gauge "kelp_storage_level_bytes" ["level"]
        "Bytes of the tables of each level.";
    ZOMBIE_TABLES = Gauge "kelp_storage_zombie_tables" []
        "Tables that were replaced and that only open views need, or that wait to be removed.";
    ZOMBIE_BYTES = Gauge "kelp_storage_zombie_bytes" []
        "Bytes of such tables.";
    MANIFEST_BYTES = Gauge "kelp_storage_manifest_bytes" []
        "Length of the manifest, the list of tables.";
    MANIFEST_ROLLS = Counter "kelp_storage_manifest_rolls_total" []
        "How often the manifest was written anew.";

    BLOCK_CACHE_BYTES = Gauge "kelp_storage_block_cache_bytes" []
        "Memory of cached blocks of tables.";
    BLOCK_CACHE_HITS = Counter "kelp_storage_block_cache_hits_total" []
        "Blocks of tables that were found in the cache.";
    BLOCK_CACHE_MISSES = Counter "kelp_storage_block_cache_misses_total" []
        "Blocks of tables that had to be read from the disk.";
    FILTER_USEFUL = Counter "kelp_storage_filter_useful_total" []
        "Lookups that a table's filter answered without reading a block.";
    FILTER_FALSE_POSITIVES = Counter "kelp_storage_filter_false_positives_total" []
        "Lookups that a filter let pass though the table lacks the key.";
    DISK_FREE = Gauge "kelp_storage_disk_free_bytes" []
        "Bytes that the disk of the data directory has left; absent while unknown.";
    DISK_FULL = Gauge "kelp_storage_disk_full" []
        "1 while the last write found no space on the disk, else 0.";
    POISONED = Gauge "kelp_storage_poisoned" []
        "1 after a failed write or sync has ended writing for good, else 0.";

    RAFT_TERM = Gauge "kelp_raft_term" ["group"]
        "The term that this node is in.";
    RAFT_LEADER = Gauge "kelp_raft_leader_node_id" ["group"]
        "Id of the leader that this node knows; 0 when it knows none.";
    RAFT_ROLE = Gauge "kelp_raft_role" ["group", "role"]
        "1 for the role that this node has now, 0 for the others.";
    RAFT_LAST_LOG = Gauge "kelp_raft_last_log_index" ["group"]
        "Index of the last entry in the log; absent while there is none.";
    RAFT_COMMITTED = Gauge "kelp_raft_committed_index" ["group"]
        "Index of the last entry known to be committed; absent while there is none.";
    RAFT_APPLIED = Gauge "kelp_raft_applied_index" ["group"]
        "Index of the last entry that readers see; absent while there is none.";
    RAFT_APPLY_LAG = Gauge "kelp_raft_apply_lag_entries" ["group"]
        "Committed entries that are not applied yet.";
    RAFT_LEADER_CONTACT = Gauge "kelp_raft_leader_contact_seconds" ["group"]
        "Age of the last message from the leader, or of the last majority on the leader itself.";
    RAFT_MEMBERS = Gauge "kelp_raft_members" ["group", "role"]
        "Members of the group, by voter and learner.";
    RAFT_REPLICATION_LAG = Gauge "kelp_raft_replication_lag_entries" ["group", "peer"]
        "On the leader: entries that a member's log lacks.";

    RAFT_SNAPSHOT = Gauge "kelp_raft_snapshot_index" ["group"]
        "Index of the last entry in the newest snapshot; absent while there is none.";
    RAFT_PURGED = Gauge "kelp_raft_purged_index" ["group"]
        "Index of the last entry that was removed from the log; absent while there is none.";
    RAFT_LOG_BYTES = Gauge "kelp_raft_log_bytes" ["group"]
        "Bytes of the entries that the log keeps.";
    RAFT_SNAPSHOTS_SENT = Counter "kelp_raft_snapshots_sent_total" ["group"]
        "Snapshots that were sent to peers, whole.";
    RAFT_SNAPSHOTS_INSTALLED = Counter "kelp_raft_snapshots_installed_total" ["group"]
        "Snapshots that this node took over.";
    RAFT_SNAPSHOT_BYTES = Counter "kelp_raft_snapshot_bytes_total" ["group", "direction"]
        "Bytes of snapshots that were sent to peers or received from them.";

    PEER_CONNECTED = Gauge "kelp_peer_connected" ["peer"]
        "1 while a connection with the peer is open, in either direction, else 0.";
    PEER_CONNECTIONS = Gauge "kelp_peer_connections" ["peer", "direction"]
        "Open connections with the peer, dialled by this node or accepted from the peer.";
    PEER_LAST_HEARD = Gauge "kelp_peer_last_heard_seconds" ["peer"]
        "How long ago anything was heard from the peer; absent if never.";
    PEER_ROUND_TRIP = Gauge "kelp_peer_round_trip_seconds" ["peer"]
        "The last measured round trip to the peer; absent before the first.";
    PEER_SENT_BYTES = Counter "kelp_peer_sent_bytes_total" ["peer"]
        "Bytes of frames sent to the peer.";
    PEER_RECEIVED_BYTES = Counter "kelp_peer_received_bytes_total" ["peer"]
        "Bytes of frames received from the peer.";
    PEER_DIALS = Counter "kelp_peer_dials_total" ["peer", "outcome"]
        "Connections to the peer that were dialled, by outcome.";
    PEER_REFUSALS = Counter "kelp_peer_refusals_total" ["reason"]
        "Incoming peer connections that were refused, by reason.";

    HEARTBEAT_SENT = Counter "kelp_heartbeat_sent_total" ["peer"]
        "UDP heartbeats sent to the peer.";
    HEARTBEAT_RECEIVED = Counter "kelp_heartbeat_received_total" ["peer"]
        "Valid UDP heartbeats received from the peer.";
    HEARTBEAT_REFUSED = Counter "kelp_heartbeat_refused_total" ["reason"]
        "Datagrams that did not count as a heartbeat, by reason.";
    HEARTBEAT_LOST = Gauge "kelp_heartbeat_lost_ratio" ["peer"]
        "Share of the peer's last hundred heartbeats that did not arrive; absent before the first.";
    HEARTBEAT_AGE = Gauge "kelp_heartbeat_age_seconds" ["peer"]
        "How long ago the peer's last heartbeat arrived; absent before the first.";
    HEARTBEAT_ROUND_TRIP = Gauge "kelp_heartbeat_round_trip_seconds" ["peer"]
        "Smoothed round trip of heartbeats; absent while the peer echoes none.";
    HEARTBEAT_OFFSET = Gauge "kelp_heartbeat_clock_offset_seconds" ["peer"]
        "By how much the peer's wall clock is ahead of this node's; absent while unknown.";
    HEARTBEAT_BLOCKED = Gauge "kelp_heartbeat_blocked" ["peer"]
        "1 while the peer is reached over TCP and its heartbeats do not arrive, else 0.";
    HEARTBEAT_DROPPED = Counter "kelp_heartbeat_dropped_total" []
        "Datagrams dropped unseen: not taken by the socket, or beyond what is looked at.";
    TELEMETRY_DATAGRAMS = Counter "kelp_telemetry_datagrams_total" []
        "Telemetry datagrams that arrived, whether or not telemetry is kept.";
    TELEMETRY_DROPPED = Counter "kelp_telemetry_dropped_total" []
        "Telemetry from places it is not taken from, malformed pairs, and names beyond the limit.";
    TELEMETRY_VALUE = Gauge "kelp_telemetry_value" ["name"]
        "Values that programs beside the node sent in the last five minutes, by name.";

    NODE_INFO = Gauge "kelp_node_build_info" ["version", "node"]
        "Always 1; the labels tell the program's version and the node's id.";
    NODE_UPTIME = Gauge "kelp_node_uptime_seconds" []
        "Time since the node started.";
    NODE_CPU = Counter "kelp_node_cpu_seconds_total" []
        "Processor time of the process, finer than that of the process family.";
    CERTIFICATE_EXPIRY = Gauge "kelp_node_certificate_expiry_timestamp_seconds" []
        "Unix time at which the node's certificate expires; absent while unknown.";
}
