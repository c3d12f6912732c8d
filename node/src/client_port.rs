//! The port for clients that speak the binary protocol (docs/formats/wire.md).
//!
//! ```text
//! accept -> tls or plaintext -> connection (bytes, time limits) -> session (order, answers)
//!                                                                     |-> proposer (writes)
//!                                                                     '-> ReadIndex, engine (reads)
//! ```

mod answer;
mod budget;
mod connection;
mod mailbox;
mod read;
mod session;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use kelp_client::{BoxStream, Listener};
use kelp_raft::{ClusterId, NodeId, Raft};
use kelp_seams::Clock;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::leadership::Leadership;
use crate::observe::RequestMetrics;
use crate::proposer::Proposer;
use crate::tls::PortTls;

pub(crate) use budget::Budget;

/// Time for the TLS handshake, or for the first byte without TLS.
const GREETING_TIME_MAX: Duration = Duration::from_secs(5);

/// Pause after `accept` fails: out of file descriptors, most likely, which only time can mend.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What the port needs to know of the cluster.
pub(crate) trait ClusterView: Send + Sync + 'static {
    /// The leader and its client address, if one is known.
    fn leader(&self) -> Option<(NodeId, String)>;
    /// Why there is no leader, naming the voters that do not answer.
    fn no_leader_text(&self) -> String;
    /// What this node says of itself, as JSON.
    fn status_json(&self) -> Vec<u8>;
}

/// What all connections share.
pub(crate) struct PortContext {
    pub(crate) node: NodeId,
    pub(crate) cluster: ClusterId,
    pub(crate) proposer: Arc<Proposer>,
    pub(crate) raft: Raft,
    pub(crate) leadership: Arc<Leadership>,
    pub(crate) view: Arc<dyn ClusterView>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) metrics: Arc<RequestMetrics>,
    pub(crate) budget: Budget,
}

impl PortContext {
    fn is_over_budget(&self) -> bool {
        self.budget.is_exhausted()
    }
}

/// Accepts connections until `stop` says so, then waits until all are drained.
///
/// Over `connection_count_max` a new connection waits in the kernel's queue until one ends.
pub(crate) async fn run(
    listener: Box<dyn Listener>,
    tls: PortTls,
    port: Arc<PortContext>,
    connection_count_max: usize,
    mut stop: watch::Receiver<bool>,
) {
    let permits = Arc::new(Semaphore::new(connection_count_max));
    let mut connections = JoinSet::new();
    while !*stop.borrow() {
        tokio::select! {
            Some(ended) = connections.join_next() => log_panic(ended),
            _ = stop.changed() => {}
            accepted = accept(listener.as_ref(), &permits) => match accepted {
                Ok((stream, permit)) => {
                    let (tls, port, stop) = (tls.clone(), Arc::clone(&port), stop.clone());
                    connections.spawn(async move {
                        let ended = greet_and_serve(stream, &tls, port, stop).await;
                        tracing::debug!(?ended, "client connection ended");
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a client connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    while let Some(ended) = connections.join_next().await {
        log_panic(ended);
    }
}

async fn accept(
    listener: &dyn Listener,
    permits: &Arc<Semaphore>,
) -> io::Result<(BoxStream, tokio::sync::OwnedSemaphorePermit)> {
    let permit = Arc::clone(permits)
        .acquire_owned()
        .await
        .map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    Ok((stream, permit))
}

async fn greet_and_serve(
    stream: BoxStream,
    tls: &PortTls,
    port: Arc<PortContext>,
    stop: watch::Receiver<bool>,
) -> io::Result<connection::End> {
    let stream = tokio::time::timeout(GREETING_TIME_MAX, tls.accept(stream)).await??;
    connection::serve(stream, port, stop).await
}

fn log_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "a client connection failed on a bug; the node goes on");
    }
}
