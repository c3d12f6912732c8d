//! Snapshots: the flushed state of the engine, shipped to a node whose next entry is discarded.
//!
//! Nothing is copied to make one: a snapshot is a handle on the newest flushed version of the
//! `state` keyspace, and its place in the log is what the records in it say. It is sent file by
//! file, on connections of its own, and becomes the state of the receiver as a whole or not at all.
//!
//! ```text
//! leader:   pin -> sender --begin, chunks, finish--> receiver :follower
//!            |                                          | checks, makes durable
//!        shipping (what runs, holds the log)         openraft -> applier -> install
//! ```
//!
//! - `image` is what openraft passes around: a pinned state on its way out, a staged one on its
//!   way in.
//! - `shipping` knows the transfers that run and how much of the log they will need.
//! - `sender` and `receiver` are the two ends of a transfer (`docs/formats/peer.md`).

mod image;
mod progress;
mod receiver;
mod sender;
mod shipping;

pub(crate) use image::{Image, Snapshot, described, pinned};
pub(crate) use receiver::{Receiver, ReceiverParts};
pub(crate) use sender::send;
pub(crate) use shipping::{Shipping, SnapshotCounters};
