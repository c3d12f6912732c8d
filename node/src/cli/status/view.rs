//! The cluster as its nodes together describe it, and how well it is.

use comfy_table::{Table, presets};
use serde::Serialize;

use crate::cli::Exit;
use crate::status_report::{ReportedHeartbeat, ReportedMember, ReportedRole, StatusReport};

/// What asking one member gave.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// Whom was asked.
    pub(super) member: ReportedMember,
    /// What it said; `None` when it did not answer.
    pub(super) report: Option<StatusReport>,
}

/// The JSON of `kelp status`: its shape is fixed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct ClusterView {
    cluster_id: String,
    leader: Option<u16>,
    term: u64,
    nodes: Vec<NodeView>,
    heartbeats_blocked: Vec<Blocked>,
    #[serde(skip)]
    health: Health,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct NodeView {
    id: u16,
    role: &'static str,
    state: &'static str,
    client: String,
    last_log: Option<u64>,
    applied: Option<u64>,
    lag: Option<u64>,
    heartbeat_age_ms: Option<u64>,
    heartbeat_state: Option<String>,
    round_trip_us: Option<u64>,
    lost_permille: Option<u16>,
    clock_offset_ms: Option<i64>,
}

/// A direction in which UDP does not get through though TCP does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Blocked {
    from: u16,
    at: u16,
}

/// Directions that are named in the table; a firewall blocks all of them alike.
const BLOCKED_NAMED_MAX: usize = 3;

/// A node that has more than this many committed entries still to apply lags. Under full load the
/// nodes, which are asked one after the other, differ by a few hundred.
const LAG_MAX: u64 = 1_000;

/// How well the cluster is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Health {
    /// Every node is up, takes its part under one leader, and has applied what is committed.
    Healthy,
    /// It serves, and something is wrong.
    Degraded,
    /// No leader with a majority: writes are refused.
    NoQuorum,
}

impl Health {
    /// The exit code of `kelp status`, with a meaning of its own.
    pub(super) fn exit(self) -> Exit {
        match self {
            Self::Healthy => Exit::Done,
            Self::Degraded => Exit::Negative,
            Self::NoQuorum => Exit::Usage,
        }
    }
}

impl ClusterView {
    /// Joins the answers of all members. There is at least one report among them.
    pub(super) fn new(cluster_id: String, answers: &[Answer]) -> Self {
        let reports: Vec<&StatusReport> = answers
            .iter()
            .filter_map(|answer| answer.report.as_ref())
            .collect();
        let term = reports.iter().map(|report| report.term).max().unwrap_or(0);
        let leader = leader_of(&reports, term);
        let committed = reports.iter().filter_map(|report| report.committed).max();
        let health = health_of(answers, leader, term, committed);
        let nodes = answers
            .iter()
            .map(|answer| {
                let heartbeat = heartbeat_of(answer.member.id, leader, &reports);
                NodeView::new(answer, committed, heartbeat)
            })
            .collect();
        Self {
            cluster_id,
            // Whom no majority follows does not lead.
            leader: leader.filter(|_| health != Health::NoQuorum),
            term,
            nodes,
            heartbeats_blocked: blocked(&reports),
            health,
        }
    }

    /// How well the cluster is.
    pub(super) fn health(&self) -> Health {
        self.health
    }

    /// One line of JSON.
    pub(super) fn json(&self) -> String {
        let text = serde_json::to_string(self).expect("numbers and texts always encode");
        format!("{text}\n")
    }

    /// A table for people, with one line above that says it all.
    pub(super) fn table(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header([
            "NODE",
            "ROLE",
            "STATE",
            "CLIENT",
            "LAST LOG",
            "APPLIED",
            "LAG",
            "HEARTBEAT",
            "RTT",
            "LOST",
            "CLOCK",
        ]);
        for node in &self.nodes {
            table.add_row([
                node.id.to_string(),
                node.role.to_owned(),
                node.state.to_owned(),
                node.client.clone(),
                or_dash(node.last_log),
                or_dash(node.applied),
                or_dash(node.lag),
                node.heartbeat(),
                text_or_dash(node.round_trip_us.map(milliseconds)),
                text_or_dash(node.lost_permille.map(percent)),
                text_or_dash(node.clock_offset_ms.map(|offset| format!("{offset:+} ms"))),
            ]);
        }
        let lines: Vec<String> = table
            .lines()
            .map(|line| line.trim_end().to_owned())
            .collect();
        let notes = self.notes();
        format!("{}\n{notes}{}\n", self.headline(), lines.join("\n"))
    }

    /// What an operator should look at although the cluster works; whole lines.
    fn notes(&self) -> String {
        if self.heartbeats_blocked.is_empty() {
            return String::new();
        }
        let named = self.heartbeats_blocked.iter().take(BLOCKED_NAMED_MAX);
        let mut named: Vec<String> = named
            .map(|blocked| format!("from node {} at node {}", blocked.from, blocked.at))
            .collect();
        let others = self.heartbeats_blocked.len() - named.len();
        if others > 0 {
            named.push(format!("{others} more"));
        }
        format!(
            "udp heartbeats do not arrive: {}; it works without them, let udp through to the peer \
             ports\n",
            named.join(", ")
        )
    }

    fn headline(&self) -> String {
        let up = self.nodes.iter().filter(|node| node.state == "up").count();
        let health = match self.health {
            Health::Healthy => "healthy".to_owned(),
            Health::Degraded => "degraded: it serves, but not every node is well".to_owned(),
            Health::NoQuorum => {
                format!(
                    "no quorum: writes are refused until {} nodes are up",
                    self.nodes.len() / 2 + 1
                )
            }
        };
        let leader = match self.leader {
            Some(leader) => format!("leader node {leader}"),
            None => "no leader".to_owned(),
        };
        format!(
            "cluster {}: {health}; {leader}, term {}, {up} of {} nodes up",
            self.cluster_id,
            self.term,
            self.nodes.len()
        )
    }
}

impl NodeView {
    fn new(answer: &Answer, committed: Option<u64>, heartbeat: Option<&ReportedHeartbeat>) -> Self {
        let report = answer.report.as_ref();
        let role = match report.map(|report| report.role) {
            Some(ReportedRole::Leader) => "leader",
            Some(ReportedRole::Follower) => "follower",
            Some(ReportedRole::Candidate) => "candidate",
            Some(ReportedRole::Learner) => "learner",
            Some(ReportedRole::Stopped) | None => "unknown",
        };
        let state = match report {
            Some(report) if report.stopping => "stopping",
            Some(_) => "up",
            None => "down",
        };
        Self {
            id: answer.member.id,
            role,
            state,
            client: answer.member.client.clone(),
            last_log: report.and_then(|report| report.last_log),
            applied: report.and_then(|report| report.applied),
            lag: report.and_then(|report| Some(behind(committed?, report))),
            heartbeat_age_ms: heartbeat.and_then(|heartbeat| heartbeat.age_ms),
            heartbeat_state: heartbeat.map(|heartbeat| heartbeat.state.clone()),
            round_trip_us: heartbeat.and_then(|heartbeat| heartbeat.round_trip_us),
            lost_permille: heartbeat.and_then(|heartbeat| heartbeat.lost_permille),
            clock_offset_ms: heartbeat.and_then(|heartbeat| heartbeat.clock_offset_ms),
        }
    }

    fn heartbeat(&self) -> String {
        if self.heartbeat_state.as_deref() == Some(BLOCKED) {
            return "udp blocked".to_owned();
        }
        let age = self.heartbeat_age_ms;
        text_or_dash(age.map(|age| format!("{age} ms ago")))
    }
}

/// The state of heartbeats in a report that do not get through.
const BLOCKED: &str = "blocked";

/// How the heartbeats of `node` arrive at the leader; at another node when that one is the leader,
/// or knows nothing of them.
fn heartbeat_of<'a>(
    node: u16,
    leader: Option<u16>,
    reports: &[&'a StatusReport],
) -> Option<&'a ReportedHeartbeat> {
    let leads = |report: &&&'a StatusReport| Some(report.node) == leader;
    let (leading, others): (Vec<_>, Vec<_>) = reports.iter().partition(leads);
    let mut viewers = leading.into_iter().chain(others);
    viewers.find_map(|report: &&'a StatusReport| {
        report.heartbeats.iter().find(|seen| seen.peer == node)
    })
}

fn blocked(reports: &[&StatusReport]) -> Vec<Blocked> {
    let of = |report: &&StatusReport| {
        let at = report.node;
        let seen = report.heartbeats.iter();
        let blocked = seen.filter(|seen| seen.state == BLOCKED);
        let blocked = blocked.map(move |seen| Blocked {
            from: seen.peer,
            at,
        });
        blocked.collect::<Vec<_>>()
    };
    reports.iter().flat_map(of).collect()
}

/// How many committed entries a node has still to apply. Indexes start at 0, so "none yet" lies one
/// below the first.
fn behind(committed: u64, report: &StatusReport) -> u64 {
    match report.applied {
        Some(applied) => committed.saturating_sub(applied),
        None => committed.saturating_add(1),
    }
}

/// Who leads in the newest term: the node that says so of itself, or the one that others name while
/// it does not answer. A node that is named and denies it was restarted and leads no more.
fn leader_of(reports: &[&StatusReport], term: u64) -> Option<u16> {
    let newest: Vec<_> = reports
        .iter()
        .filter(|report| report.term == term)
        .collect();
    let own = newest
        .iter()
        .find(|report| report.role == ReportedRole::Leader)
        .map(|report| report.node);
    let named = newest.iter().find_map(|report| report.leader);
    let answers = |node| reports.iter().any(|report| report.node == node);
    own.or_else(|| named.filter(|node| !answers(*node)))
}

fn health_of(answers: &[Answer], leader: Option<u16>, term: u64, committed: Option<u64>) -> Health {
    let voters = answers.iter().filter(|answer| answer.member.voter);
    let follows = |answer: &&Answer| {
        answer.report.as_ref().is_some_and(|report| {
            leader.is_some() && report.leader == leader && report.term == term
        })
    };
    let well = |answer: &Answer| {
        let report = answer.report.as_ref();
        follows(&answer) && report.is_some_and(|report| is_well(report, &answer.member, committed))
    };
    let majority = voters.clone().count() / 2 + 1;
    if voters.filter(follows).count() < majority {
        Health::NoQuorum
    } else if answers.iter().all(well) {
        Health::Healthy
    } else {
        Health::Degraded
    }
}

/// Whether a node that follows the leader takes its part and keeps up.
fn is_well(report: &StatusReport, member: &ReportedMember, committed: Option<u64>) -> bool {
    let takes_part = match report.role {
        ReportedRole::Leader | ReportedRole::Follower => member.voter,
        ReportedRole::Learner => !member.voter,
        ReportedRole::Candidate | ReportedRole::Stopped => false,
    };
    let keeps_up = committed.is_some_and(|committed| behind(committed, report) <= LAG_MAX);
    takes_part && report.applied.is_some() && keeps_up && !report.stopping
}

fn or_dash(number: Option<u64>) -> String {
    text_or_dash(number.map(|number| number.to_string()))
}

fn text_or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}

/// Microseconds as milliseconds with two digits.
fn milliseconds(micros: u64) -> String {
    let hundredths = micros.saturating_add(5) / 10;
    format!("{}.{:02} ms", hundredths / 100, hundredths % 100)
}

fn percent(permille: u16) -> String {
    format!("{}.{} %", permille / 10, permille % 10)
}

#[cfg(test)]
mod tests;
