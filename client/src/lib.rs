//! What Rust programs call to reach a Kelp cluster.
//!
//! Three layers, each usable alone:
//! - [`Transport`]: the door to the network (listen, connect, datagrams). [`TokioTransport`] is the
//!   real one; simulators bring their own. Nodes use the same seam.
//! - [`Connection`]: one pipelined connection to one node. Requests are matched with replies by
//!   id, in any order; everything in flight is bounded and has a deadline.
//! - [`Client`]: a list of endpoints. It picks one, moves on when that fails, and repeats what has
//!   surely not been executed, until the deadline of the call.
//!
//! Every error says through `executed()` whether the request may have taken effect. A write whose
//! outcome is unknown is reported, never repeated: only the caller knows whether twice is harmless.
//!
//! ```no_run
//! # async fn example() -> Result<(), kelp_client::ClientError> {
//! let client = kelp_client::Client::builder()
//!     .endpoints(["127.0.0.1:4800", "127.0.0.1:4810"])
//!     .connect()
//!     .await?;
//! client.put("colour", "green").await?;
//! let record = client.get("colour").await?.expect("it was put just now");
//! assert_eq!(record.value, "green");
//! # Ok(())
//! # }
//! ```
//!
//! Connections run on the tokio runtime of whoever opens them, one task each.

mod client;
mod connection;
mod error;
mod options;
mod scan;
mod transport;

pub use client::{Client, ClientBuilder, Deleted, Record, Written};
pub use connection::{
    CallError, CloseReason, ConnectError, Connection, ConnectionOptions, LeaderAddress, Login,
    PendingReply, Reply, Tls,
};
pub use error::ClientError;
pub use kelp_wire as wire;
pub use kelp_wire::{ClusterId, Consistency, Executed, NodeId, Revision, SessionToken, Status};
pub use options::{RequestOptions, ScanOptions, ScanRange};
pub use scan::{Scan, ScanPage, ScanRecord};
pub use transport::{BoxStream, ByteStream, Datagrams, Listener, TokioTransport, Transport};
