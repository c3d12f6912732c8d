//! Links between nodes: framed, pipelined calls over mutual TLS, one connection per peer and class.
//!
//! ```text
//! raft, proposer --call--> PeerLinks -> Link --TLS--> PeerServer -> Session -> PeerHandler
//!                                     (per peer                   (futures,
//!                                     and class)               replies by id)
//! ```
//!
//! [`PeerLinks`] is the dialling side and implements [`kelp_raft::PeerBus`]; [`PeerServer`] is the
//! accepting side and feeds a [`kelp_raft::PeerHandler`]. Both know frames, identities, deadlines
//! and addresses, and refuse to know what a request means. A node reaches each peer over its own
//! outbound connections and answers on the inbound ones. The bytes are drawn in
//! `docs/formats/peer.md`, part 1.

use std::time::Duration;

use kelp_raft::{Boot, DatabaseId, NodeId};

mod book;
mod calls;
mod context;
mod directory;
mod frame;
mod link;
mod links;
mod output;
mod patience;
mod pipe;
mod secret;
mod server;
mod session;
mod strangers;
#[cfg(test)]
mod tests;

pub(crate) use book::lock;
pub use book::{PeerBook, PeerHealth, RefusalReason};
pub use directory::DirectoryBook;
pub(crate) use directory::emptied_text;
pub use frame::{
    FRAME_BYTES_MAX, Frame, FrameError, FrameKind, Hello, Refusal, RefusalCode, Welcome,
    decode_frame,
};
pub use links::PeerLinks;
pub(crate) use secret::LinkSecret;
pub use server::PeerServer;

/// Who this node is on the peer links, and its limits.
#[derive(Clone, Debug)]
pub struct PeerOptions {
    /// This node.
    pub node: NodeId,
    /// Its boot, told to peers in the hello.
    pub boot: Boot,
    /// The data directory that it runs on, told to peers in both greetings.
    pub directory: DatabaseId,
    /// Bounds of time and memory.
    pub limits: PeerLimits,
}

/// Bounds of the peer links. The default is for production; tests shrink it.
#[derive(Clone, Debug)]
pub struct PeerLimits {
    /// Time for TCP, TLS and hello of a dialled connection together. An election needs the answer
    /// of a live peer within half a second; two seconds still reach one across the world on a lossy
    /// network.
    pub dial: Duration,
    /// Time until the first byte of an accepted connection: that of a peer comes with the first
    /// packet.
    pub first_byte: Duration,
    /// Time for the TLS handshake of an accepted connection, against peers that say nothing.
    pub handshake: Duration,
    /// Time between the handshake and the hello of an accepted connection.
    pub hello: Duration,
    /// A ping is sent this often on every open connection; it measures the round trip and finds
    /// dead links.
    pub ping_interval: Duration,
    /// A connection on which nothing was heard for this long, counted in ping intervals, is broken.
    /// The peer answers pings even while its handler is slow, so a slow disk does not break links.
    pub silence: Duration,
    /// Longest pause between two dials of a peer that cannot be reached; short, because it delays a
    /// peer's return.
    pub backoff_max: Duration,
    /// Bytes of requests that wait for one connection, beyond which a call is refused at once. Four
    /// times the forwarding window of a node, so that admission upstream is what normally limits.
    pub queue_bytes: usize,
    /// Accepted connections that have not proved yet who they are; the oldest makes room for a new
    /// one. All of a hundred peers may come back at the same moment.
    pub strangers: usize,
    /// Those from one host. Several nodes on one host, each with four classes, stay below it.
    pub strangers_per_source: usize,
    /// Accepted connections of peers: four classes for each of 128.
    pub connections: usize,
}

impl Default for PeerLimits {
    fn default() -> Self {
        Self {
            dial: Duration::from_secs(2),
            first_byte: Duration::from_secs(1),
            handshake: Duration::from_secs(5),
            hello: Duration::from_secs(5),
            ping_interval: Duration::from_secs(1),
            silence: Duration::from_secs(5),
            backoff_max: Duration::from_millis(500),
            queue_bytes: 64 * 1024 * 1024,
            strangers: 128,
            strangers_per_source: 32,
            connections: 512,
        }
    }
}
