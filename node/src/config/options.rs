//! The table of all options of a node.

/// What the text of an option means before it is parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One value.
    Single,
    /// Yes or no: a flag without a value, `true` or `false` elsewhere.
    Switch,
    /// Several values, separated by this character where they stand in one text; a list in the TOML
    /// file.
    List(char),
}

/// One option: its names, its help, its default.
#[derive(Debug)]
pub struct OptionSpec {
    /// The flag without its dashes, like `election-min`.
    pub name: &'static str,
    /// What stands for the value in help texts.
    pub value: &'static str,
    /// What it does, for someone who has never seen Kelp.
    pub help: &'static str,
    /// The value when nobody gives one.
    pub default: Option<&'static str>,
    /// How many values, of what kind.
    pub shape: Shape,
}

impl OptionSpec {
    /// The environment variable, like `KELP_ELECTION_MIN`.
    pub fn variable(&self) -> String {
        format!("KELP_{}", self.name.to_uppercase().replace('-', "_"))
    }

    /// The key in the TOML file, like `election_min`.
    pub fn key(&self) -> String {
        self.name.replace('-', "_")
    }

    /// The option that `name` (a flag without dashes) stands for.
    pub fn find(name: &str) -> Option<&'static Self> {
        OPTIONS.iter().find(|spec| spec.name == name)
    }
}

/// Every option of a node, in the order in which `config show` prints them.
pub const OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "dir",
        value: "DIR",
        help: "Data directory of this node; created if absent, used by one process at a time",
        default: None,
        shape: Shape::Single,
    },
    OptionSpec {
        name: "certs",
        value: "DIR",
        help: "Certificate bundle of this node, made by `kelp certs issue`; it also says \
               which node of which cluster this is",
        default: None,
        shape: Shape::Single,
    },
    OptionSpec {
        name: "name",
        value: "NAME",
        help: "Name of this node; refused when the list of members calls it otherwise",
        default: None,
        shape: Shape::Single,
    },
    OptionSpec {
        name: "join",
        value: "[NAME=]PEER,...",
        help: "Peer addresses of all first members, the same list on every node: the first is \
               node 1, the second node 2, ..., called n1, n2, ... unless named. Client and HTTP \
               ports are taken to be one below and one above the peer port. The own address alone \
               founds a cluster of one",
        default: None,
        shape: Shape::List(','),
    },
    OptionSpec {
        name: "member",
        value: "id=N,peer=ADDR,...",
        help: "One first member in full: \
               id=1,peer=HOST:PORT[,name=NAME][,client=HOST:PORT][,http=HOST:PORT]; repeat \
               for each, instead of --join",
        default: None,
        shape: Shape::List(';'),
    },
    OptionSpec {
        name: "client",
        value: "ADDR",
        help: "Address for clients; beyond loopback it wants TLS and a client certificate",
        default: Some("127.0.0.1:4800"),
        shape: Shape::Single,
    },
    OptionSpec {
        name: "peer",
        value: "ADDR",
        help: "Address for the other nodes (always mutual TLS)",
        default: Some("127.0.0.1:4801"),
        shape: Shape::Single,
    },
    OptionSpec {
        name: "http",
        value: "ADDR",
        help: "Address for /metrics, /livez and /readyz; beyond loopback it wants TLS and a \
               client certificate",
        default: Some("127.0.0.1:4802"),
        shape: Shape::Single,
    },
    OptionSpec {
        name: "resp",
        value: "ADDR",
        help: "Address for Redis clients; beyond loopback it wants TLS and a client certificate. \
               None without it; the usual one is 127.0.0.1:6379",
        default: None,
        shape: Shape::Single,
    },
    OptionSpec {
        name: "insecure",
        value: "BOOL",
        help: "Allow plaintext without a login on addresses that other hosts can reach",
        default: Some("false"),
        shape: Shape::Switch,
    },
    OptionSpec {
        name: "heartbeat",
        value: "DURATION",
        help: "How often the leader shows that it is alive; the same on all nodes",
        default: Some("100ms"),
        shape: Shape::Single,
    },
    OptionSpec {
        name: "election-min",
        value: "DURATION",
        help: "Shortest silence of the leader after which a node stands for election; at \
               least twice the heartbeat",
        default: Some("250ms"),
        shape: Shape::Single,
    },
    OptionSpec {
        name: "election-max",
        value: "DURATION",
        help: "Longest such silence; raise all three together on slow disks or wide networks",
        default: Some("500ms"),
        shape: Shape::Single,
    },
    OptionSpec {
        name: "telemetry",
        value: "FROM",
        help: "From where telemetry datagrams to the peer port are kept and shown in /metrics: \
               off, local (this machine only), any",
        default: Some("off"),
        shape: Shape::Single,
    },
    OptionSpec {
        name: "stop-grace",
        value: "DURATION",
        help: "How long a stopping node may take to hand over leadership and finish requests",
        default: Some("5s"),
        shape: Shape::Single,
    },
    OptionSpec {
        name: "log",
        value: "FILTER",
        help: "What to log to standard error: error, warn, info, debug, trace, or a filter \
               like info,kelp_raft=debug",
        default: Some("info"),
        shape: Shape::Single,
    },
    OptionSpec {
        name: "log-format",
        value: "FORMAT",
        help: "text for people, json for machines",
        default: Some("text"),
        shape: Shape::Single,
    },
];

#[cfg(test)]
mod tests;
