//! Typed, checked options of a node. [`NodeSettings::check`] lists every problem, not only the
//! first.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::layers::Merged;
use super::members::{self, MemberSettings};
use super::quantity::parse_duration;
use crate::node::TelemetryMode;
use crate::observe::logs::{self, LogFormat};

/// One thing that is wrong with the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The option, as a flag without dashes.
    pub option: &'static str,
    /// What is wrong and what would do.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.option, self.message)
    }
}

/// Everything that is wrong with the configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct Problems(pub Vec<Problem>);

/// The checked options of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSettings {
    /// The data directory.
    pub directory: PathBuf,
    /// The certificate bundle.
    pub certs: PathBuf,
    /// The name that the list of members must have for this node, if one was given.
    pub name: Option<String>,
    /// The listener for clients.
    pub client: SocketAddr,
    /// The listener for peers.
    pub peer: SocketAddr,
    /// The listener for HTTP.
    pub http: SocketAddr,
    /// The listener for the Redis protocol, if one is asked for.
    pub resp: Option<SocketAddr>,
    /// The first members; empty when none were given.
    pub members: Vec<MemberSettings>,
    /// Plaintext on addresses that other hosts can reach is allowed.
    pub insecure: bool,
    /// Time between two signs of life of the leader.
    pub heartbeat: Duration,
    /// Shortest election timeout.
    pub election_min: Duration,
    /// Longest election timeout.
    pub election_max: Duration,
    /// From where telemetry is taken.
    pub telemetry: TelemetryMode,
    /// Time for a graceful stop.
    pub stop_grace: Duration,
    /// The log filter.
    pub log: String,
    /// The log format.
    pub log_format: LogFormat,
}

/// The shortest heartbeat: below it, the timers of a busy machine alone start elections.
const HEARTBEAT_MIN: Duration = Duration::from_millis(10);
/// The longest election timeout: above it, an operator would take the cluster for dead.
const ELECTION_MAX: Duration = Duration::from_mins(1);

impl NodeSettings {
    /// Turns merged text into settings.
    ///
    /// # Errors
    /// Every problem found, each naming its option.
    pub fn check(merged: &Merged) -> Result<Self, Problems> {
        let mut reader = Reader {
            merged,
            problems: Vec::new(),
        };
        let settings = reader.settings();
        if let Some(settings) = &settings {
            reader.check_addresses(settings);
            reader.check_timing(settings);
        }
        match settings {
            Some(settings) if reader.problems.is_empty() => Ok(settings),
            _ => Err(Problems(reader.problems)),
        }
    }
}

impl NodeSettings {
    /// Whether a listener may speak plaintext without a login: only where other hosts cannot reach
    /// it, or by consent. Elsewhere it wants TLS and a client certificate.
    pub fn allows_plaintext(&self, listener: SocketAddr) -> bool {
        self.insecure || listener.ip().is_loopback()
    }

    /// What the list of members says of this node and its own options deny; empty when they agree.
    pub fn differences(&self, own: &MemberSettings) -> Vec<String> {
        let mut differences = own.differences(self.client, self.peer, self.http);
        if let Some(name) = self.name.as_ref().filter(|name| **name != own.name) {
            differences.push(format!("name {} but --name {name}", own.name));
        }
        differences
    }
}

/// Reads options one by one and collects what is wrong.
struct Reader<'a> {
    merged: &'a Merged,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    /// Reads all options before giving up, so that every problem is seen.
    fn settings(&mut self) -> Option<NodeSettings> {
        let directory = self.required("dir", "the data directory, as in --dir /var/lib/kelp");
        let certs = self.required(
            "certs",
            "the bundle of this node, as in --certs /etc/kelp/certs; `kelp certs issue` makes it",
        );
        let client = self.address("client");
        let peer = self.address("peer");
        let http = self.address("http");
        let resp = self.text("resp").is_some().then(|| self.address("resp"));
        let name = self.name();
        let members = self.members();
        let heartbeat = self.duration("heartbeat");
        let election_min = self.duration("election-min");
        let election_max = self.duration("election-max");
        let telemetry = self.telemetry();
        let stop_grace = self.duration("stop-grace");
        let insecure = self.switch("insecure");
        let log = self.log_filter();
        let log_format = self.log_format();
        Some(NodeSettings {
            directory: directory?.into(),
            certs: certs?.into(),
            name,
            client: client?,
            peer: peer?,
            http: http?,
            resp: match resp {
                Some(address) => Some(address?),
                None => None,
            },
            members,
            insecure: insecure?,
            heartbeat: heartbeat?,
            election_min: election_min?,
            election_max: election_max?,
            telemetry: telemetry?,
            stop_grace: stop_grace?,
            log: log?,
            log_format: log_format?,
        })
    }

    fn problem(&mut self, option: &'static str, message: impl Into<String>) {
        self.problems.push(Problem {
            option,
            message: message.into(),
        });
    }

    fn text(&self, option: &str) -> Option<&str> {
        self.merged.get(option).map(|value| value.text.as_str())
    }

    fn required(&mut self, option: &'static str, what: &str) -> Option<String> {
        let text = self.text(option).filter(|text| !text.is_empty());
        if let Some(text) = text {
            return Some(text.to_owned());
        }
        self.problem(option, format!("not set: give {what}"));
        None
    }

    fn address(&mut self, option: &'static str) -> Option<SocketAddr> {
        let text = self.text(option)?.replace("localhost:", "127.0.0.1:");
        if let Ok(address) = text.parse() {
            return Some(address);
        }
        self.problem(
            option,
            format!("'{text}' is not IP:PORT, as in 127.0.0.1:4800 or 0.0.0.0:4800"),
        );
        None
    }

    fn duration(&mut self, option: &'static str) -> Option<Duration> {
        match parse_duration(self.text(option)?) {
            Ok(duration) => Some(duration),
            Err(error) => {
                self.problem(option, error.to_string());
                None
            }
        }
    }

    fn switch(&mut self, option: &'static str) -> Option<bool> {
        match self.text(option)? {
            "true" | "1" | "yes" => Some(true),
            "false" | "0" | "no" => Some(false),
            other => {
                let message = format!("'{other}' is neither true nor false");
                self.problem(option, message);
                None
            }
        }
    }

    fn log_filter(&mut self) -> Option<String> {
        let text = self.text("log")?.to_owned();
        match logs::check_filter(&text) {
            Ok(()) => Some(text),
            Err(error) => {
                self.problem("log", error.to_string());
                None
            }
        }
    }

    fn telemetry(&mut self) -> Option<TelemetryMode> {
        match self.text("telemetry")? {
            "off" => Some(TelemetryMode::Off),
            "local" => Some(TelemetryMode::Local),
            "any" => Some(TelemetryMode::Any),
            other => {
                let message = format!("'{other}' is neither off, local nor any");
                self.problem("telemetry", message);
                None
            }
        }
    }

    fn log_format(&mut self) -> Option<LogFormat> {
        match self.text("log-format")? {
            "text" => Some(LogFormat::Human),
            "json" => Some(LogFormat::Json),
            other => {
                let message = format!("'{other}' is neither text nor json");
                self.problem("log-format", message);
                None
            }
        }
    }

    fn members(&mut self) -> Vec<MemberSettings> {
        let join = self.items("join", ',');
        let full = self.items("member", ';');
        if !join.is_empty() && !full.is_empty() {
            self.problem("member", "given together with join: use one of the two");
            return Vec::new();
        }
        let option = if full.is_empty() { "join" } else { "member" };
        let parsed = (1_u16..)
            .zip(&join)
            .map(|(position, text)| MemberSettings::of_join(position, text))
            .chain(full.iter().map(|text| MemberSettings::of_text(text)));
        let mut members = Vec::new();
        for member in parsed {
            match member {
                Ok(member) => members.push(member),
                Err(message) => self.problem(option, message),
            }
        }
        for message in members::problems_between(&members) {
            self.problem(option, message);
        }
        members
    }

    fn name(&mut self) -> Option<String> {
        let name = self.text("name")?.to_owned();
        match members::check_name(&name) {
            Ok(()) => Some(name),
            Err(message) => {
                self.problem("name", message);
                None
            }
        }
    }

    fn items(&self, option: &str, separator: char) -> Vec<String> {
        self.text(option)
            .unwrap_or_default()
            .split(separator)
            .map(str::trim)
            .filter(|item| !item.is_empty())
            .map(ToOwned::to_owned)
            .collect()
    }

    fn check_addresses(&mut self, settings: &NodeSettings) {
        let mut listeners = vec![
            ("client", settings.client),
            ("peer", settings.peer),
            ("http", settings.http),
        ];
        listeners.extend(settings.resp.map(|address| ("resp", address)));
        for (index, (option, address)) in listeners.iter().enumerate() {
            let same = |(_, other): &&(&str, SocketAddr)| other == address && address.port() != 0;
            if let Some((other, _)) = listeners.iter().take(index).find(same) {
                self.problem(option, format!("{address} is also the {other} address"));
            }
        }
    }

    fn check_timing(&mut self, settings: &NodeSettings) {
        if settings.heartbeat < HEARTBEAT_MIN {
            self.problem("heartbeat", format!("less than {HEARTBEAT_MIN:?}"));
        }
        if settings.election_min < settings.heartbeat * 2 {
            self.problem("election-min", "less than twice the heartbeat");
        }
        if settings.election_max <= settings.election_min {
            self.problem("election-max", "not above election-min");
        }
        if settings.election_max > ELECTION_MAX {
            self.problem("election-max", format!("more than {ELECTION_MAX:?}"));
        }
    }
}

#[cfg(test)]
mod tests;
