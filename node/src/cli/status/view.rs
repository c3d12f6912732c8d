//! The cluster as its nodes together describe it, and how well it is.

use comfy_table::{Table, presets};
use serde::Serialize;

use crate::cli::Exit;
use crate::status_report::{ReportedMember, ReportedRole, StatusReport};

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
}

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
            .map(|answer| NodeView::new(answer, committed))
            .collect();
        Self {
            cluster_id,
            // Whom no majority follows does not lead.
            leader: leader.filter(|_| health != Health::NoQuorum),
            term,
            nodes,
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
                node.heartbeat_age_ms
                    .map_or_else(|| "-".to_owned(), |age| format!("{age} ms ago")),
            ]);
        }
        let lines: Vec<String> = table
            .lines()
            .map(|line| line.trim_end().to_owned())
            .collect();
        format!("{}\n{}\n", self.headline(), lines.join("\n"))
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
    fn new(answer: &Answer, committed: Option<u64>) -> Self {
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
            heartbeat_age_ms: report.and_then(|report| report.leader_contact_ms),
        }
    }
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
    number.map_or_else(|| "-".to_owned(), |number| number.to_string())
}

#[cfg(test)]
mod tests;
