//! The text of INFO.

use std::fmt::Write;

use kelp_raft::{NodeId, Role, StateError, StateView};
use kelp_seams::Monotonic;

use super::RedisContext;
use super::read::{Size, size};

/// The version of Redis that clients may take this node for: its commands are a part of that one's,
/// with the same replies.
pub(super) const REDIS_VERSION: &str = "7.4.0";

/// Keys of a database that INFO counts one by one; clients ask for it when they connect.
const SIZE_EXACT_MAX: usize = 10_000;

/// A part of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    Server,
    Clients,
    Memory,
    Persistence,
    Stats,
    Replication,
    Kelp,
    Keyspace,
}

impl Section {
    const ALL: [Self; 8] = [
        Self::Server,
        Self::Clients,
        Self::Memory,
        Self::Persistence,
        Self::Stats,
        Self::Replication,
        Self::Kelp,
        Self::Keyspace,
    ];

    const fn title(self) -> &'static str {
        match self {
            Self::Server => "Server",
            Self::Clients => "Clients",
            Self::Memory => "Memory",
            Self::Persistence => "Persistence",
            Self::Stats => "Stats",
            Self::Replication => "Replication",
            Self::Kelp => "Kelp",
            Self::Keyspace => "Keyspace",
        }
    }
}

/// Which parts are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sections {
    wanted: Vec<Section>,
}

impl Sections {
    /// The sections of these names, all without a name; unknown ones are passed over.
    pub(super) fn new(names: &[&[u8]]) -> Self {
        const ALL: [&[u8]; 3] = [b"all", b"default", b"everything"];
        let is = |name: &[u8], title: &[u8]| name.eq_ignore_ascii_case(title);
        let all = names.is_empty()
            || names
                .iter()
                .any(|name| ALL.iter().any(|title| is(name, title)));
        let mut wanted = Section::ALL.to_vec();
        wanted.retain(|section| {
            all || names
                .iter()
                .any(|name| is(name, section.title().as_bytes()))
        });
        Self { wanted }
    }

    /// Whether the keys have to be counted.
    pub(super) fn need_the_state(&self) -> bool {
        self.wanted.contains(&Section::Keyspace)
    }
}

/// What a node says of itself, as of one time.
pub(super) struct Report {
    node: NodeId,
    port: u16,
    uptime_seconds: u64,
    clients: usize,
    clients_max: usize,
    commands: u64,
    connections: u64,
    memtable_bytes: usize,
    loading: bool,
    leader: Option<NodeId>,
    leads: bool,
    term: u64,
    applied: Option<u64>,
    members: usize,
}

impl Report {
    pub(super) fn new(context: &RedisContext, now: Monotonic) -> Self {
        let status = context.port.raft.status();
        let uptime = now.saturating_duration_since(context.started);
        Self {
            node: status.node,
            port: context.address.port(),
            uptime_seconds: uptime.as_secs(),
            clients: context.metrics.connections(),
            clients_max: context.port.seats.client_count_max(),
            commands: context.metrics.total(),
            connections: context.clients.load(std::sync::atomic::Ordering::Relaxed),
            memtable_bytes: context.database.metrics().memtable_bytes,
            // A client that sees this waits and asks again.
            loading: context.port.leadership.route().is_none(),
            leader: status.leader,
            leads: status.role == Role::Leader,
            term: status.term.get(),
            applied: status.applied.map(kelp_raft::LogIndex::get),
            members: status.members.len(),
        }
    }

    /// The text, with the sizes of the databases that hold anything.
    pub(super) fn text(&self, sections: &Sections, sizes: &[(u8, Size)]) -> String {
        let mut text = String::new();
        for section in &sections.wanted {
            let break_before = if text.is_empty() { "" } else { "\r\n" };
            write!(text, "{break_before}# {}\r\n", section.title())
                .expect("a string takes all writes");
            self.section(*section, sizes, &mut text);
        }
        text
    }

    fn section(&self, section: Section, sizes: &[(u8, Size)], text: &mut String) {
        match section {
            Section::Server => self.server(text),
            Section::Clients => {
                line(text, "connected_clients", self.clients);
                line(text, "maxclients", self.clients_max);
            }
            Section::Memory => {
                line(text, "used_memory", self.memtable_bytes);
                line(text, "maxmemory", 0);
                line(text, "maxmemory_policy", "noeviction");
            }
            Section::Persistence => {
                line(text, "loading", u8::from(self.loading));
                line(text, "loading_eta_seconds", u8::from(self.loading));
                line(text, "aof_enabled", 1);
            }
            Section::Stats => {
                line(text, "total_connections_received", self.connections);
                line(text, "total_commands_processed", self.commands);
            }
            Section::Replication => {
                line(text, "role", "master");
                line(text, "connected_slaves", 0);
            }
            Section::Kelp => self.kelp(text),
            Section::Keyspace => {
                for (database, size) in sizes {
                    let exact = u8::from(size.exact);
                    let value = format!("keys={},expires=0,avg_ttl=0,exact={exact}", size.keys);
                    line(text, &format!("db{database}"), value);
                }
            }
        }
    }

    fn server(&self, text: &mut String) {
        line(text, "redis_version", REDIS_VERSION);
        line(text, "redis_mode", "standalone");
        line(text, "kelp_version", env!("CARGO_PKG_VERSION"));
        line(text, "process_id", std::process::id());
        line(text, "tcp_port", self.port);
        line(text, "uptime_in_seconds", self.uptime_seconds);
        line(text, "uptime_in_days", self.uptime_seconds / 86_400);
    }

    fn kelp(&self, text: &mut String) {
        line(text, "node", self.node);
        line(text, "leader", self.leader.map_or(0, NodeId::get));
        line(text, "leads", u8::from(self.leads));
        line(text, "term", self.term);
        if let Some(applied) = self.applied {
            line(text, "applied", applied);
        }
        line(text, "members", self.members);
    }
}

fn line(text: &mut String, name: &str, value: impl std::fmt::Display) {
    write!(text, "{name}:{value}\r\n").expect("a string takes all writes");
}

impl RedisContext {
    /// What the engine holds, in memory and on disk, about.
    pub(super) fn storage_bytes(&self) -> usize {
        let metrics = self.database.metrics();
        let on_disk: u64 = metrics.level_bytes.iter().sum();
        metrics
            .memtable_bytes
            .saturating_add(usize::try_from(on_disk).unwrap_or(usize::MAX))
    }

    /// How many keys the databases have that have any.
    pub(super) fn sizes(&self, view: &StateView) -> Result<Vec<(u8, Size)>, StateError> {
        let storage_bytes = self.storage_bytes();
        let mut sizes = Vec::new();
        for database in 0..super::session::DATABASE_COUNT {
            let size = size(view, database, SIZE_EXACT_MAX, storage_bytes)?;
            if size.keys > 0 {
                sizes.push((database, size));
            }
        }
        Ok(sizes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report {
            node: NodeId::new(2),
            port: 6379,
            uptime_seconds: 90_000,
            clients: 3,
            clients_max: 10,
            commands: 7,
            connections: 4,
            memtable_bytes: 1_000,
            loading: true,
            leader: None,
            leads: false,
            term: 5,
            applied: None,
            members: 3,
        }
    }

    #[test]
    fn sections_are_chosen_by_name_and_all_without_one() {
        let named = |names: &[&'static str]| {
            let names: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
            Sections::new(&names)
        };
        assert_eq!(named(&[]).wanted, Section::ALL);
        assert_eq!(named(&["server", "ALL"]), named(&[]));
        let one = named(&["Server", "nothing"]);
        assert!(!one.need_the_state());
        let text = report().text(&one, &[]);
        assert!(text.starts_with("# Server\r\nredis_version:7."), "{text}");
        assert!(!text.contains("# Clients"), "{text}");
    }

    #[test]
    fn a_node_without_a_leader_says_that_it_is_loading_and_sizes_say_if_they_are_exact() {
        let size = Size {
            keys: 12,
            exact: false,
        };
        let text = report().text(&Sections::new(&[]), &[(3, size)]);
        assert!(text.contains("\r\nloading:1\r\n"), "{text}");
        assert!(
            text.contains("\r\ndb3:keys=12,expires=0,avg_ttl=0,exact=0\r\n"),
            "{text}"
        );
    }
}
