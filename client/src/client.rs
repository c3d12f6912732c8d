//! The client of a cluster: any node will do, and a failed one is left.
//!
//! A call tries one node after the other until its deadline, as long as the request has surely not
//! been executed: no connection, a refusal that says so, or any failure of a read. Nothing that a
//! failed attempt taught outlives it, neither a leader's address nor a connection that fell
//! silent, so a client never stays with a dead node.

mod attempts;
mod builder;
mod lane;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use kelp_wire::{Executed, ReadOptions, Request, Revision, SessionToken, Status, WriteOptions};

use crate::connection::Reply;
use crate::error::ClientError;
use crate::options::{RequestOptions, ScanOptions};
use crate::scan::Scan;
use builder::Settings;
use lane::Lane;

pub use builder::ClientBuilder;

/// A handle on a cluster. Clones share the connections, which close with the last clone.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    settings: Settings,
    lanes: Vec<Lane>,
    next_lane: AtomicUsize,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("endpoints", &self.inner.settings.endpoints)
            .finish_non_exhaustive()
    }
}

/// What a put did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Revision that the key has now.
    pub revision: Revision,
    /// A read that carries this sees the write on any node.
    pub token: Option<SessionToken>,
}

/// What a delete did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deleted {
    /// Whether there was something to delete.
    pub existed: bool,
    /// Revision of the deletion, if the node says it.
    pub revision: Option<Revision>,
    /// A read that carries this sees the deletion on any node.
    pub token: Option<SessionToken>,
}

/// What a get found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The value.
    pub value: Bytes,
    /// Revision of the write that set it.
    pub revision: Revision,
    /// What the read has seen of the log.
    pub token: Option<SessionToken>,
}

impl Client {
    /// Starts to describe a client.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// Sets a key. Durable on a majority when it returns.
    ///
    /// # Errors
    /// See [`ClientError`]; after `OutcomeUnknown` the write may have happened.
    pub async fn put(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<Written, ClientError> {
        self.put_with(key, value, &RequestOptions::default()).await
    }

    /// As [`Client::put`], with options.
    pub async fn put_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        options: &RequestOptions,
    ) -> Result<Written, ClientError> {
        let request = Request::Put {
            database: options.database,
            key: key.as_ref(),
            value: value.as_ref(),
            options: WriteOptions::default(),
        };
        let reply = self.call(request, options).await?;
        match (reply.status, reply.revision) {
            (Status::Ok, Some(revision)) => Ok(Written {
                revision,
                token: reply.token,
            }),
            (Status::Ok, None) => Err(unexpected(&reply, "put without revision")),
            _ => Err(unexpected(&reply, "status of a put")),
        }
    }

    /// Reads a key; `None` when it is absent.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Record>, ClientError> {
        self.get_with(key, &RequestOptions::default()).await
    }

    /// As [`Client::get`], with options.
    pub async fn get_with(
        &self,
        key: impl AsRef<[u8]>,
        options: &RequestOptions,
    ) -> Result<Option<Record>, ClientError> {
        let request = Request::Get {
            database: options.database,
            key: key.as_ref(),
            options: ReadOptions {
                deadline: None,
                consistency: options.consistency,
                token: options.token,
            },
        };
        let reply = self.call(request, options).await?;
        match (reply.status, reply.revision) {
            (Status::NotFound, _) => Ok(None),
            (Status::Ok, Some(revision)) => Ok(Some(Record {
                value: reply.value,
                revision,
                token: reply.token,
            })),
            (Status::Ok, None) => Err(unexpected(&reply, "record without revision")),
            _ => Err(unexpected(&reply, "status of a get")),
        }
    }

    /// Removes a key. Durable on a majority when it returns.
    ///
    /// # Errors
    /// See [`ClientError`]; after `OutcomeUnknown` the key may be gone.
    pub async fn delete(&self, key: impl AsRef<[u8]>) -> Result<Deleted, ClientError> {
        self.delete_with(key, &RequestOptions::default()).await
    }

    /// As [`Client::delete`], with options.
    pub async fn delete_with(
        &self,
        key: impl AsRef<[u8]>,
        options: &RequestOptions,
    ) -> Result<Deleted, ClientError> {
        let request = Request::Delete {
            database: options.database,
            key: key.as_ref(),
            options: WriteOptions::default(),
        };
        let reply = self.call(request, options).await?;
        match reply.status {
            Status::Ok | Status::NotFound => Ok(Deleted {
                existed: reply.status == Status::Ok,
                revision: reply.revision,
                token: reply.token,
            }),
            _ => Err(unexpected(&reply, "status of a delete")),
        }
    }

    /// Describes a scan; nothing is sent before its first page is asked for.
    pub fn scan(&self, options: ScanOptions) -> Scan {
        Scan::new(self.clone(), options)
    }

    /// One node's view of the cluster, as JSON text.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn status(&self) -> Result<String, ClientError> {
        let reply = self
            .call(Request::Status, &RequestOptions::default())
            .await?;
        if reply.status != Status::Ok {
            return Err(unexpected(&reply, "status of a status request"));
        }
        String::from_utf8(Vec::from(reply.value.clone()))
            .map_err(|_| unexpected(&reply, "status text is not UTF-8"))
    }

    /// Sends bytes to a node and back; proves that it is there.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn echo(&self, value: impl AsRef<[u8]>) -> Result<Bytes, ClientError> {
        let request = Request::Echo {
            value: value.as_ref(),
        };
        let reply = self.call(request, &RequestOptions::default()).await?;
        match reply.status {
            Status::Ok => Ok(reply.value),
            _ => Err(unexpected(&reply, "status of an echo")),
        }
    }

    /// Sends a request, of whatever kind, with the attempts and errors of every call. The reply's
    /// status is one of those below 16; the deadline option is filled in.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn call<'a>(
        &'a self,
        request: Request<'a>,
        options: &RequestOptions,
    ) -> impl Future<Output = Result<Reply, ClientError>> + Send + 'a {
        let timeout = options.timeout.unwrap_or(self.inner.settings.timeout);
        attempts::run(&self.inner.settings, self.lane(), request, timeout)
    }

    /// Opens one connection, if none is open, to learn whether the cluster can be reached.
    async fn reach(&self) -> Result<(), ClientError> {
        attempts::reach(&self.inner.settings, self.lane()).await
    }

    fn lane(&self) -> &Lane {
        let lanes = &self.inner.lanes;
        let index = self.inner.next_lane.fetch_add(1, Ordering::Relaxed) % lanes.len();
        &lanes[index]
    }
}

fn unexpected(reply: &Reply, problem: &'static str) -> ClientError {
    ClientError::UnexpectedReply {
        problem,
        executed: match reply.status.executed() {
            Executed::No => Executed::No,
            executed => executed,
        },
    }
}
