//! One pipelined connection to one node.
//!
//! ```text
//! caller: encode into `outgoing`, take a slot ──wake──▶ driver task: write batch ──▶ socket
//! caller ◀──wake── slot holds the reply ◀── driver task: read, match by id ◀──────── socket
//! ```
//!
//! A caller encodes its own frame, under a short lock, into the buffer that the driver writes
//! next; there is no task, channel or timer per request. The driver first lets the other ready
//! tasks of its runtime run, so that their frames leave in the same write.
//!
//! Invariants:
//! - A request id is not reused before its reply came or the connection ended, so a late reply
//!   never reaches another request.
//! - A frame that was not handed to the socket whole is surely not executed; one that was may be.
//! - Requests and bytes in flight stay within [`ConnectionOptions`]; callers beyond wait.

mod driver;
mod handshake;
mod in_flight;
mod reply;
mod shared;
mod vigil;

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use kelp_wire::{ClusterId, Executed, FrameError, HelloReply, Request, RequestError};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use thiserror::Error;
use tokio::time::{Instant, timeout_at};

use crate::transport::Transport;
use shared::{Entry, Shared};

pub use reply::{LeaderAddress, Reply};

/// How a connection is opened and bounded.
#[derive(Clone, Debug)]
pub struct ConnectionOptions {
    /// TLS, with the identity of the client if it has one; plaintext without.
    pub tls: Option<Tls>,
    /// Name and password for the node; none by default.
    pub login: Option<Login>,
    /// The cluster that must answer; any by default.
    pub cluster: Option<ClusterId>,
    /// Requests in flight, abandoned ones included. 1,024 by default, at least 1.
    pub requests_max: usize,
    /// Bytes of request frames in flight. 16 MiB by default; a single larger frame goes alone.
    pub request_bytes_max: usize,
    /// After so long without a byte from the node while it owes replies, it is pinged. 1 s by
    /// default.
    pub ping_after: Duration,
    /// After so long without a byte from the node while it owes replies, the connection is given
    /// up. 5 s by default.
    pub silence_max: Duration,
}

impl Default for ConnectionOptions {
    fn default() -> Self {
        Self {
            tls: None,
            login: None,
            cluster: None,
            requests_max: 1_024,
            request_bytes_max: 16 * 1024 * 1024,
            ping_after: Duration::from_secs(1),
            silence_max: Duration::from_secs(5),
        }
    }
}

/// TLS for a connection.
#[derive(Clone, Debug)]
pub struct Tls {
    /// Trusted roots, identity and versions; made by the caller.
    pub config: Arc<ClientConfig>,
    /// The name that the node's certificate must carry; the host of the endpoint by default.
    pub server_name: Option<ServerName<'static>>,
}

/// A name and its password.
#[derive(Clone)]
pub struct Login {
    /// The user, at most 255 bytes.
    pub user: String,
    /// The password.
    pub password: String,
}

impl std::fmt::Debug for Login {
    /// Shows the user only.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// Why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CloseReason {
    /// The socket failed.
    #[error("connection failed: {message}")]
    Failed {
        /// What the socket said.
        message: String,
    },
    /// TLS ended it: one side does not accept the certificate of the other, or they do not speak
    /// the same protocol.
    #[error("TLS failed: {message}")]
    Tls {
        /// What is wrong.
        message: String,
    },
    /// The node closed the connection.
    #[error("connection closed by the node")]
    ClosedByNode,
    /// The node named a fault in the stream and is about to close it.
    #[error("node gave the connection up: {message}")]
    GivenUpByNode {
        /// Text of the error frame.
        message: String,
    },
    /// The node sent what the protocol does not allow.
    #[error("node broke the protocol: {0}")]
    BadFrame(FrameError),
    /// The node answered a request that is not in flight, or with another opcode.
    #[error("node sent a reply that fits no request")]
    UnexpectedReply,
    /// The node accepted the connection but did not answer in time, not even a ping.
    #[error("node fell silent")]
    Silent,
    /// The node did not take the bytes of a request until its deadline.
    #[error("node stopped reading")]
    Stalled,
    /// This side let the connection go, or its runtime ended.
    #[error("connection was dropped")]
    Dropped,
}

/// Why a call on a connection has no reply.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CallError {
    /// The request breaks a limit of the protocol; nothing was sent.
    #[error("request is not allowed: {0}")]
    Invalid(RequestError),
    /// The deadline passed first.
    #[error("deadline passed")]
    TimedOut {
        /// Whether the request may have taken effect.
        executed: Executed,
    },
    /// The connection ended first.
    #[error("{reason}")]
    Lost {
        /// Why it ended.
        reason: CloseReason,
        /// Whether the request may have taken effect.
        executed: Executed,
    },
}

impl CallError {
    /// Whether the request may have taken effect. Reads have no effect: always `No`.
    pub fn executed(&self) -> Executed {
        match self {
            Self::Invalid(_) => Executed::No,
            Self::TimedOut { executed } | Self::Lost { executed, .. } => *executed,
        }
    }
}

/// A handle on a connection; clones share it, and it ends with the last of them.
#[derive(Clone)]
pub struct Connection {
    handle: Arc<Handle>,
    about: Arc<About>,
}

/// What is known of the other side.
struct About {
    hello: HelloReply,
    address: String,
}

/// Keeps the connection open; its end ends the driver. Pending replies hold it too.
struct Handle {
    shared: Arc<Shared>,
}

impl Handle {
    fn try_start(
        self: &Arc<Self>,
        request: &Request<'_>,
        deadline: Instant,
    ) -> Result<Option<PendingReply>, CallError> {
        Ok(match self.shared.enter(request, deadline)? {
            Entry::Full => None,
            Entry::Entered(slot) => Some(PendingReply {
                handle: Arc::clone(self),
                slot: Some(slot),
            }),
        })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // Nobody waits any more, so what was handed to the socket makes no difference.
        self.shared.close(&CloseReason::Dropped, 0);
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("address", &self.about.address)
            .field("node", &self.about.hello.node)
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// Opens a connection to "host:port", does the TLS handshake if asked to, and says hello.
    ///
    /// # Errors
    /// Nothing that was sent has any effect, whatever the error. See [`ConnectError`].
    pub async fn open(
        transport: &dyn Transport,
        address: &str,
        options: &ConnectionOptions,
        deadline: Instant,
    ) -> Result<Self, ConnectError> {
        handshake::open(transport, address, options, deadline).await
    }

    /// The node's answer to hello: version, cluster and node id.
    pub fn hello(&self) -> &HelloReply {
        &self.about.hello
    }

    /// The "host:port" that was dialled.
    pub fn address(&self) -> &str {
        &self.about.address
    }

    /// Why the connection ended, if it has. Calls after that fail as not executed.
    pub fn closed(&self) -> Option<CloseReason> {
        self.handle.shared.closed()
    }

    /// Whether two handles mean the same connection.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.handle, &other.handle)
    }

    /// Sends a request and waits for its reply, also for room to send it.
    ///
    /// Dropping the future abandons the reply, not the request. Use
    /// [`CallError::executed`] before sending it again.
    pub async fn call(&self, request: &Request<'_>, deadline: Instant) -> Result<Reply, CallError> {
        if let Some(pending) = self.try_start(request, deadline)? {
            return pending.await;
        }
        self.start_when_room(request, deadline).await?.await
    }

    /// Sends a request at once, or returns `None` when as much as allowed is in flight.
    ///
    /// Requests leave in the order of these calls. The bytes go out when the task of the
    /// connection runs next, not inside this call.
    pub fn try_start(
        &self,
        request: &Request<'_>,
        deadline: Instant,
    ) -> Result<Option<PendingReply>, CallError> {
        self.handle.try_start(request, deadline)
    }

    async fn start_when_room(
        &self,
        request: &Request<'_>,
        deadline: Instant,
    ) -> Result<PendingReply, CallError> {
        let shared = &self.handle.shared;
        let _waiting = shared.wait_for_room();
        let mut room = pin!(shared.room().notified());
        loop {
            // Enabled before the attempt, so that room made in between is not missed.
            room.as_mut().enable();
            if let Some(pending) = self.try_start(request, deadline)? {
                shared.pass_room_on();
                return Ok(pending);
            }
            if timeout_at(deadline, room.as_mut()).await.is_err() {
                return Err(CallError::TimedOut {
                    executed: Executed::No,
                });
            }
            room.set(shared.room().notified());
        }
    }
}

/// The reply to a request that has been sent, or will be in a moment.
///
/// Dropping it abandons the reply: the request stays in flight until the node has answered.
#[must_use = "the reply is lost unless it is awaited"]
pub struct PendingReply {
    handle: Arc<Handle>,
    slot: Option<in_flight::SlotIndex>,
}

impl Future for PendingReply {
    type Output = Result<Reply, CallError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let slot = self
            .slot
            .expect("a reply is not polled again after it was ready");
        let result = self.handle.shared.poll_reply(slot, context);
        if result.is_ready() {
            self.slot = None;
        }
        result
    }
}

impl Drop for PendingReply {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            self.handle.shared.abandon(slot);
        }
    }
}

/// Why no connection came about. No request was sent.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The address cannot be reached.
    #[error("cannot connect to {address}: {source}")]
    Unreachable {
        /// The "host:port" dialled.
        address: String,
        /// What the network said.
        source: std::io::Error,
    },
    /// The TLS handshake failed.
    #[error("TLS with {address} failed: {source}")]
    Tls {
        /// The "host:port" dialled.
        address: String,
        /// What failed.
        source: std::io::Error,
    },
    /// The node did not answer in time.
    #[error("{address} did not answer in time")]
    TimedOut {
        /// The "host:port" dialled.
        address: String,
    },
    /// The node, or this side, refused the other at hello.
    #[error("{address} refused, {status}: {message}")]
    Refused {
        /// The "host:port" dialled.
        address: String,
        /// Why, as a status.
        status: kelp_wire::Status,
        /// Why, in words.
        message: String,
    },
    /// The connection broke during hello.
    #[error("{address}: {reason}")]
    Lost {
        /// The "host:port" dialled.
        address: String,
        /// Why it broke.
        reason: CloseReason,
    },
}

impl ConnectError {
    /// The status of a refusal that neither time nor another attempt at this node heals; `None`
    /// when another attempt may do better.
    pub fn refusal(&self) -> Option<kelp_wire::Status> {
        match self {
            Self::Refused { status, .. } if !status.is_transient() => Some(*status),
            Self::Lost {
                reason: CloseReason::Tls { .. },
                ..
            } => Some(kelp_wire::Status::Refused),
            Self::Tls { source, .. } if tls_fault(source).is_some() => {
                Some(kelp_wire::Status::Refused)
            }
            Self::Unreachable { .. }
            | Self::Tls { .. }
            | Self::TimedOut { .. }
            | Self::Refused { .. }
            | Self::Lost { .. } => None,
        }
    }
}

/// What TLS itself found wrong, if the error is no failure of the socket below it.
fn tls_fault(error: &std::io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}
