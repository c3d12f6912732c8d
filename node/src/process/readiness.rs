//! Waits until a cluster serves: a leader is elected and every node answers and follows it.

use std::time::Duration;

use futures_util::future::join_all;
use kelp_client::{Client, ClientError};
use tokio::time::sleep;

use crate::status_report::{ReportedRole, StatusReport};

/// How often the nodes are asked.
const POLL: Duration = Duration::from_millis(50);
/// A node that needs longer than this to answer is not ready.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// Waits until every node at `endpoints` answers and all follow one leader, and returns who leads.
pub(crate) async fn wait(endpoints: Vec<String>) -> u16 {
    let clients: Result<Vec<Client>, ClientError> = endpoints
        .iter()
        .map(|endpoint| {
            Client::builder()
                .endpoints([endpoint])
                .timeout(ANSWER_TIMEOUT)
                .build()
        })
        .collect();
    let clients = clients.expect("addresses made by this program are host:port");
    loop {
        let reports = join_all(clients.iter().map(ask)).await;
        if let Some(leader) = common_leader(&reports) {
            return leader;
        }
        sleep(POLL).await;
    }
}

async fn ask(client: &Client) -> Option<StatusReport> {
    let json = client.status().await.ok()?;
    StatusReport::decode(json.as_bytes()).ok()
}

/// The leader that all nodes name, if each of them answers and the leader itself agrees.
fn common_leader(reports: &[Option<StatusReport>]) -> Option<u16> {
    let leader = reports.first()?.as_ref()?.leader?;
    let follows = |report: &Option<StatusReport>| {
        report.as_ref().is_some_and(|report| {
            report.leader == Some(leader)
                && (report.node == leader) == (report.role == ReportedRole::Leader)
        })
    };
    reports.iter().all(follows).then_some(leader)
}
