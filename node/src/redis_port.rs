//! The port for Redis clients: RESP (docs/formats/resp.md) on the same data as the client port.
//!
//! ```text
//! accept -> tls or plaintext -> connection (bytes, time) -> session (commands, replies in order)
//!                                                             |-> lane -> proposer, ReadIndex
//!                                                             '-> cursors of scans
//! ```
//!
//! Connection, lane, seats and budget are those of the client port, so both ports together stay
//! within one set of limits. A client has its seat from the start: Redis clients may connect long
//! before they say anything. What differs from Redis is told in docs/operations/redis.md.

mod answer;
mod commands;
mod cursors;
mod glob;
mod info;
mod read;
mod session;
mod slots;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kelp_client::{BoxStream, Listener};
use kelp_raft::{GroupId, NodeId};
use kelp_seams::Monotonic;
use kelp_storage::Database;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::accept::Accepting;
use crate::client_port::connection::{self, End};
use crate::client_port::seats::Seat;
use crate::client_port::{PortContext, farewell, log_panic};
use crate::observe::{DoorReason, RespMetrics};
use crate::peer::PeerLinks;
use crate::tls::{Accepted, PortTls};

pub(crate) use commands::COMMAND_NAMES;
pub(crate) use cursors::{CURSOR, Cursors, decode_request, encode_reply};

use session::{Client, Session};

/// Time for the first byte and the TLS handshake where plaintext is not let in.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(5);

/// Connections that are being turned away at the same time; further ones are closed without a
/// word.
const TURNED_AWAY_COUNT_MAX: usize = 64;

const FULL: &str = "-ERR max number of clients reached\r\n";

const TLS_ONLY: &str = "-ERR this port speaks TLS only; give a certificate of this cluster\r\n";

/// What all connections share.
pub(crate) struct RedisContext {
    /// What they share with those of the client port.
    port: Arc<PortContext>,
    database: Database,
    peers: RedisPeers,
    metrics: Arc<RespMetrics>,
    address: SocketAddr,
    started: Monotonic,
    /// Connections so far.
    clients: AtomicU64,
}

/// How nodes tell each other where scans stand.
pub(crate) struct RedisPeers {
    /// To the other nodes.
    pub(crate) links: PeerLinks,
    /// The group whose keys are scanned.
    pub(crate) group: GroupId,
    /// What this node knows.
    pub(crate) cursors: Arc<Cursors>,
}

impl RedisContext {
    /// The context of a port that listens at `address`.
    pub(crate) fn new(
        port: Arc<PortContext>,
        database: Database,
        peers: RedisPeers,
        metrics: Arc<RespMetrics>,
        address: SocketAddr,
    ) -> Self {
        Self {
            started: port.clock.monotonic(),
            port,
            database,
            peers,
            metrics,
            address,
            clients: AtomicU64::new(0),
        }
    }

    fn node(&self) -> NodeId {
        self.port.node
    }

    /// The number of a new client, from 1.
    fn next_client(&self) -> u64 {
        self.clients.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// Accepts connections until `stop` says so, then waits until all are drained.
pub(crate) async fn run(
    listener: Box<dyn Listener>,
    tls: PortTls,
    context: Arc<RedisContext>,
    mut stop: watch::Receiver<bool>,
) {
    let mut accepting = Accepting::new(listener, "redis");
    let mut connections = JoinSet::new();
    let mut turned_away = JoinSet::new();
    while !*stop.borrow() {
        while turned_away.try_join_next().is_some() {}
        let (stream, address) = tokio::select! {
            Some(ended) = connections.join_next() => {
                log_panic(ended);
                continue;
            }
            _ = stop.changed() => continue,
            accepted = accepting.next() => accepted,
        };
        if let Some(seat) = context.port.seats.seat() {
            let (tls, context, stop) = (tls.clone(), Arc::clone(&context), stop.clone());
            connections.spawn(async move {
                let ended = meet_and_serve(stream, address, seat, &tls, context, stop).await;
                tracing::debug!(?ended, "redis connection ended");
            });
        } else if turned_away.len() < TURNED_AWAY_COUNT_MAX {
            turned_away.spawn(turn_away(stream, FULL));
        }
    }
    drop(accepting);
    while let Some(ended) = connections.join_next().await {
        log_panic(ended);
    }
}

async fn meet_and_serve(
    stream: BoxStream,
    address: SocketAddr,
    seat: Seat,
    tls: &PortTls,
    context: Arc<RedisContext>,
    mut stop: watch::Receiver<bool>,
) -> io::Result<End> {
    // Where plaintext is let in, the client may have nothing to say for long.
    let time_max = if tls.allows_plaintext() {
        Duration::MAX
    } else {
        HANDSHAKE_TIME_MAX
    };
    let met = tokio::select! {
        met = tokio::time::timeout(time_max, tls.meet(stream)) => met??,
        _ = stop.wait_for(|stopped| *stopped) => return Ok(End::Drained),
    };
    match met {
        Accepted::Ready(stream) => {
            let port = Arc::clone(&context.port);
            let _counted = context.metrics.connected();
            let now = port.clock.monotonic();
            let client = Client::new(context.next_client(), address, now);
            let session = Session::new(context, client, seat);
            connection::serve(stream, None, session, port, stop).await
        }
        Accepted::NotTls(stream) => {
            context.port.seats.refused(DoorReason::Plaintext);
            turn_away(stream, TLS_ONLY).await?;
            Ok(End::Refused)
        }
    }
}

/// Tells a client that is not served why, and closes.
async fn turn_away<S>(mut stream: S, text: &str) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    stream.write_all(text.as_bytes()).await?;
    let (mut reader, mut writer) = tokio::io::split(stream);
    farewell::part(&mut reader, &mut writer).await;
    Ok(())
}
