//! The nodes of the cluster as clients see them.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use kelp_client::{Client, ScanOptions};
use serde::Deserialize;
use tokio::time::{Instant, sleep};

use crate::DevCluster;

/// One call, all attempts together. Longer than an election, so that a roaming client rides over
/// it; short enough that the round goes on.
const CALL_TIMEOUT: Duration = Duration::from_secs(3);
/// How often a status is asked for while waiting.
const POLL: Duration = Duration::from_millis(50);

/// What a node says about itself; fields that are not needed here are passed over.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct NodeStatus {
    pub(super) node: u16,
    pub(super) role: String,
    pub(super) applied: Option<u64>,
    pub(super) committed: Option<u64>,
    pub(super) chain_hash: String,
}

/// A client for each node, and the addresses for more.
pub(super) struct Nodes {
    clients: BTreeMap<u16, Client>,
    endpoints: Vec<String>,
}

impl Nodes {
    /// Makes the clients; addresses stay the same when a node is restarted.
    pub(super) fn connect(cluster: &DevCluster) -> Result<Self> {
        let nodes = cluster.nodes()?;
        let endpoints: Vec<String> = nodes.iter().map(|node| node.client.clone()).collect();
        let mut clients = BTreeMap::new();
        for node in nodes {
            clients.insert(node.id, client([node.client])?);
        }
        ensure!(clients.len() >= 3, "chaos needs three nodes");
        Ok(Self { clients, endpoints })
    }

    pub(super) fn ids(&self) -> Vec<u16> {
        self.clients.keys().copied().collect()
    }

    /// A client that uses any node.
    pub(super) fn roaming_client(&self) -> Result<Client> {
        client(self.endpoints.clone())
    }

    /// A client that stays with the node at this position, counted round and round.
    pub(super) fn pinned_client(&self, position: usize) -> Result<Client> {
        client([self.endpoints[position % self.endpoints.len()].clone()])
    }

    /// What node `id` says about itself.
    pub(super) async fn status(&self, id: u16) -> Result<NodeStatus> {
        let client = self
            .clients
            .get(&id)
            .with_context(|| format!("no node {id}"))?;
        let status: NodeStatus = serde_json::from_str(&client.status().await?)?;
        ensure!(
            status.node == id,
            "node {} answers for node {id}",
            status.node
        );
        Ok(status)
    }

    /// The node that leads, as soon as one says that it does.
    pub(super) async fn leader(&self, timeout: Duration) -> Result<u16> {
        let deadline = Instant::now() + timeout;
        while Instant::now() < deadline {
            for id in self.ids() {
                if self
                    .status(id)
                    .await
                    .is_ok_and(|status| status.role == "leader")
                {
                    return Ok(id);
                }
            }
            sleep(POLL).await;
        }
        bail!("no leader within {timeout:?}")
    }

    /// Waits until node `id` has applied what any node has committed at the start of the wait.
    pub(super) async fn wait_until_caught_up(&self, id: u16, timeout: Duration) -> Result<()> {
        let deadline = Instant::now() + timeout;
        let mut target = None;
        for other in self.ids() {
            if let Ok(status) = self.status(other).await {
                target = target.max(status.committed);
            }
        }
        let mut last = None;
        while Instant::now() < deadline {
            if let Ok(status) = self.status(id).await {
                if status.applied >= target {
                    return Ok(());
                }
                last = Some(status);
            }
            sleep(POLL).await;
        }
        bail!("node {id} has not caught up to {target:?} within {timeout:?}, it says {last:?}")
    }

    /// Waits until all nodes have applied the same index, all that is committed, and returns that
    /// index with the chain hash they share.
    pub(super) async fn wait_until_equal(&self, timeout: Duration) -> Result<(u64, String)> {
        let deadline = Instant::now() + timeout;
        loop {
            let mut statuses = Vec::new();
            for id in self.ids() {
                statuses.push(self.status(id).await);
            }
            let known: Vec<&NodeStatus> = statuses.iter().flatten().collect();
            let first = known.first().copied();
            let agree = first.is_some_and(|first| {
                known.len() == self.clients.len()
                    && known.iter().all(|other| other.applied == first.applied)
                    && known.iter().all(|other| other.committed == other.applied)
            });
            if let (
                true,
                Some(NodeStatus {
                    applied: Some(applied),
                    chain_hash,
                    ..
                }),
            ) = (agree, first)
            {
                let same = known.iter().all(|other| other.chain_hash == *chain_hash);
                ensure!(same, "nodes differ at index {applied}: {known:?}");
                return Ok((*applied, chain_hash.clone()));
            }
            if Instant::now() >= deadline {
                bail!("nodes do not agree within {timeout:?}: {statuses:?}");
            }
            sleep(POLL).await;
        }
    }

    /// The whole state as each node serves it.
    pub(super) async fn read_all(&self) -> Result<Vec<BTreeMap<Bytes, Bytes>>> {
        let mut states = Vec::new();
        for (id, client) in &self.clients {
            let mut state = BTreeMap::new();
            let mut scan = client.scan(ScanOptions::default());
            while let Some(page) = scan
                .next_page()
                .await
                .with_context(|| format!("node {id}"))?
            {
                state.extend(
                    page.records
                        .into_iter()
                        .map(|record| (record.key, record.value)),
                );
            }
            states.push(state);
        }
        Ok(states)
    }
}

fn client(endpoints: impl IntoIterator<Item = String>) -> Result<Client> {
    Ok(Client::builder()
        .endpoints(endpoints)
        .timeout(CALL_TIMEOUT)
        .build()?)
}
