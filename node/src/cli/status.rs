//! `kelp status`: asks every node and shows the cluster as they together describe it.

use std::time::Duration;

use clap::Args;
use futures_util::future::join_all;

use super::connection::Target;
use super::{ClientArgs, Environment, Exit, Failure, OutputFormat, client_runtime, console};
use crate::status_report::{ReportedMember, StatusReport};

mod view;

use view::{Answer, ClusterView};

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct StatusArgs {
    #[command(flatten)]
    client: ClientArgs,
}

const EXAMPLES: &str = "\
Finds all nodes from any one that answers, then asks each of them. LAG is how many log entries a
node has still to apply. Exit codes: 0 every node is well; 1 degraded, it serves; 2 no quorum,
writes are refused; 3 no node answered.

Examples:
  kelp status
  kelp status -o json | jq '.nodes[] | select(.state != \"up\")'";

/// A node that needs longer to say how it is counts as down.
const NODE_TIMEOUT: Duration = Duration::from_secs(2);

pub(super) fn run(
    args: StatusArgs,
    above: ClientArgs,
    environment: Environment<'_>,
) -> Result<Exit, Failure> {
    let mut target = args.client.resolve(above, environment)?;
    target.timeout = target.timeout.min(NODE_TIMEOUT);
    let view = client_runtime()?.block_on(ask_all(&target))?;
    let text = match target.output {
        OutputFormat::Table => view.table(),
        OutputFormat::Json | OutputFormat::Raw => view.json(),
    };
    console::data(text.as_bytes())?;
    Ok(view.health().exit())
}

async fn ask_all(target: &Target) -> Result<ClusterView, Failure> {
    let given = join_all(
        target
            .endpoints
            .iter()
            .map(|endpoint| ask(target, endpoint)),
    )
    .await;
    let mut failures = Vec::new();
    let mut first: Option<StatusReport> = None;
    for answer in given {
        match answer {
            // The node that is furthest knows the members best.
            Ok(report)
                if first
                    .as_ref()
                    .is_none_or(|best| best.applied < report.applied) =>
            {
                first = Some(report);
            }
            Ok(_) => {}
            Err(failure) => failures.push(failure),
        }
    }
    let Some(first) = first else {
        return Err(no_answer(failures, &target.endpoints));
    };
    let mut members = first.members.clone();
    if members.is_empty() {
        members.push(lone_member(&first, target));
    }
    let answers = join_all(members.into_iter().map(|member| async {
        let report = ask(target, &member.client)
            .await
            .ok()
            .filter(|report| report.node == member.id && report.cluster_id == first.cluster_id);
        Answer { member, report }
    }))
    .await;
    Ok(ClusterView::new(first.cluster_id.clone(), &answers))
}

/// What to say when no node answered: a refusal in words is more than that others are not there.
fn no_answer(failures: Vec<Failure>, endpoints: &[String]) -> Failure {
    let refusal = failures
        .iter()
        .position(|failure| failure.exit != Exit::Unavailable);
    let mut failures = failures.into_iter();
    match refusal {
        Some(position) => failures.nth(position),
        None => failures.next_back(),
    }
    .unwrap_or_else(|| {
        Failure::new(
            Exit::Unavailable,
            format!("no node answers at {}", endpoints.join(", ")),
        )
    })
}

/// A node that knows of no members yet still is one.
fn lone_member(report: &StatusReport, target: &Target) -> ReportedMember {
    ReportedMember {
        id: report.node,
        name: format!("n{}", report.node),
        voter: true,
        client: target.endpoints.first().cloned().unwrap_or_default(),
        peer: String::new(),
        http: String::new(),
    }
}

/// Asks one node how it sees itself and the cluster.
async fn ask(target: &Target, endpoint: &str) -> Result<StatusReport, Failure> {
    let client = target.client_of(endpoint)?;
    let json = client
        .status()
        .await
        .map_err(|error| Failure::from(&error))?;
    StatusReport::decode(json.as_bytes()).map_err(|error| {
        Failure::new(
            Exit::Refused,
            format!("{endpoint} sent a status that is not understood: {error}"),
        )
    })
}

#[cfg(test)]
mod tests;
