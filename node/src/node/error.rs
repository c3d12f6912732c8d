//! Why a node does not start, by what a person must do about it.

use std::io;
use std::net::SocketAddr;

use kelp_raft::NodeId;
use kelp_storage::{OpenError, StorageError};

use crate::peer::emptied_text;
use crate::tls::TlsError;

/// One of a node's listening ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// For clients.
    Client,
    /// For the other nodes.
    Peer,
    /// For metrics and health.
    Http,
    /// For Redis clients.
    Resp,
}

impl std::fmt::Display for Port {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Client => "client",
            Self::Peer => "peer",
            Self::Http => "http",
            Self::Resp => "resp",
        })
    }
}

/// A node could not start. Nothing that was acknowledged is lost by it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A port is taken, or the address is not this machine's: choose another.
    #[error("cannot listen on the {port} address {address}")]
    Listen {
        /// Which port.
        port: Port,
        /// The address asked for.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The system gave no address for an open socket.
    #[error("cannot read the address of a listening socket")]
    Socket(#[source] io::Error),
    /// The data directory cannot be used: its text says why and what helps.
    #[error(transparent)]
    Directory(#[from] OpenError),
    /// The disk failed under the data directory.
    #[error("storage failed while the node started")]
    Storage(#[from] StorageError),
    /// Raft refused: foreign data, bad timing or a damaged log.
    #[error(transparent)]
    Raft(#[from] kelp_raft::StartError),
    /// The first membership was refused.
    #[error("cannot initialize the cluster")]
    Bootstrap(#[source] kelp_raft::RaftError),
    /// The other members know this node with another data directory.
    #[error("{}", emptied_text(*.node))]
    Emptied {
        /// This node.
        node: NodeId,
    },
    /// The certificate is not this node's, or cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl StartError {
    /// Names the port of a listening error.
    pub(super) fn listen(port: Port, address: SocketAddr) -> impl Fn(io::Error) -> Self {
        move |source| Self::Listen {
            port,
            address,
            source,
        }
    }
}
