//! The port for clients that speak the binary protocol (docs/formats/wire.md).
//!
//! ```text
//! accept -> tls or plaintext -> connection (bytes, time) -> session (requests, answers)
//!   '-> turned away                                            '-> lane (order)
//!                                                                    |-> proposer (writes)
//!                                                                    '-> ReadIndex, engine (reads)
//! ```
//!
//! Connection, lane, holdings, seats and budget know no protocol: the Redis port uses them, too.

mod answer;
mod budget;
pub(crate) mod connection;
pub(crate) mod farewell;
pub(crate) mod holdings;
pub(crate) mod lane;
pub(crate) mod mailbox;
pub(crate) mod output;
pub(crate) mod patience;
mod read;
pub(crate) mod seats;
mod session;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use kelp_client::{BoxStream, Listener};
use kelp_raft::{ClusterId, NodeId, Raft};
use kelp_seams::{Clock, Executor};
use kelp_wire::Status;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};

use crate::accept::Accepting;
use crate::leadership::Leadership;
use crate::observe::{DoorReason, RequestMetrics};
use crate::proposer::Proposer;
use crate::tls::{Accepted, PortTls};

pub(crate) use budget::Budget;
pub(crate) use seats::Seats;

use seats::Stranger;
use session::Session;

/// Time for the TLS handshake, or for the first byte without TLS.
const GREETING_TIME_MAX: Duration = Duration::from_secs(5);

/// Connections that are being turned away at the same time; further ones are closed without a
/// word.
const TURNED_AWAY_COUNT_MAX: usize = 64;

const TLS_ONLY: &str = "this port speaks TLS: give --ca, --cert and --key";

const CROWDED: &str = "too many connections have not said hello yet; try again or another node";

/// What refusals say of the cluster.
pub(crate) struct Hints {
    /// The leader and its client address, if one is known.
    pub(crate) leader: Option<(NodeId, String)>,
    /// Why there is no leader, naming the voters that do not answer.
    pub(crate) no_leader_text: String,
}

/// What the port needs to know of the cluster.
pub(crate) trait ClusterView: Send + Sync + 'static {
    /// What to tell a client that is refused. Cheap: it is asked for each of them.
    fn hints(&self) -> Arc<Hints>;
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
    /// Runs the reads that need the disk.
    pub(crate) executor: Arc<dyn Executor>,
    pub(crate) metrics: Arc<RequestMetrics>,
    pub(crate) seats: Seats,
    pub(crate) budget: Budget,
}

/// Accepts connections until `stop` says so, then waits until all are drained.
pub(crate) async fn run(
    listener: Box<dyn Listener>,
    tls: PortTls,
    port: Arc<PortContext>,
    mut stop: watch::Receiver<bool>,
) {
    let mut accepting = Accepting::new(listener, "client");
    let mut connections = JoinSet::new();
    let mut turned_away = JoinSet::new();
    while !*stop.borrow() {
        while turned_away.try_join_next().is_some() {}
        let (stream, stranger) = tokio::select! {
            Some(ended) = connections.join_next() => {
                log_panic(ended);
                continue;
            }
            _ = stop.changed() => continue,
            accepted = accept(&mut accepting, &port.seats) => accepted,
        };
        if let Some(stranger) = stranger {
            let (tls, port, stop) = (tls.clone(), Arc::clone(&port), stop.clone());
            connections.spawn(async move {
                let ended = greet_and_serve(stream, stranger, &tls, port, stop).await;
                tracing::debug!(?ended, "client connection ended");
            });
            continue;
        }
        port.seats.refused(DoorReason::Crowded);
        if turned_away.len() < TURNED_AWAY_COUNT_MAX {
            turned_away.spawn(farewell::turn_away(stream, Status::Overloaded, CROWDED));
        }
    }
    drop(accepting);
    while let Some(ended) = connections.join_next().await {
        log_panic(ended);
    }
}

/// The next connection, in a place if there is one. Cancel-safe.
async fn accept(accepting: &mut Accepting, seats: &Seats) -> (BoxStream, Option<Stranger>) {
    let place = seats.wait_for_place().await;
    let (stream, _) = accepting.next().await;
    let place = place.or_else(|| seats.place());
    (stream, place.map(|place| seats.stranger(place)))
}

async fn greet_and_serve(
    stream: BoxStream,
    stranger: Stranger,
    tls: &PortTls,
    port: Arc<PortContext>,
    stop: watch::Receiver<bool>,
) -> io::Result<connection::End> {
    match tokio::time::timeout(GREETING_TIME_MAX, tls.meet(stream)).await?? {
        Accepted::Ready(stream) => {
            let session = Session::new(Arc::clone(&port));
            connection::serve(stream, Some(stranger), session, port, stop).await
        }
        Accepted::NotTls(stream) => {
            port.seats.refused(DoorReason::Plaintext);
            farewell::turn_away(stream, Status::Refused, TLS_ONLY).await?;
            Ok(connection::End::Refused)
        }
    }
}

pub(crate) fn log_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "a connection failed on a bug; the node goes on");
    }
}
