//! Who decides: everything that touches openraft.
//!
//! A [`Raft`] is this node's replica of one group. Entries go in through [`Raft::propose`], are
//! ordered by openraft, rest in a log of the storage engine, and are applied to the `state`
//! keyspace by a job of their own. Readers take a [`ReadPoint`], wait until it is applied and read
//! a [`StateView`]; they never pass through Raft.
//!
//! ```text
//!  propose --> openraft core --> log_store --> kelp-storage Log (WAL, fsync)
//!                 |   ^
//!       network --+   +-- server        links, bus: bytes to and from peers
//!                 v
//!           state_machine --> applier job --> apply --> `state` keyspace
//!                                  |
//!                     observer, then the proposer's outcome
//! ```
//!
//! What holds, and where:
//! - openraft's types stay inside this crate; the public face is Kelp's own types.
//! - What is on disk and on the wire is encoded by `payload`, `message` and `model`, never by
//!   openraft's own layouts (`docs/formats/entry.md`, `docs/formats/peer.md`).
//! - A vote is on disk before it is given, an entry before it is acknowledged; both are one
//!   ordered stream of the same WAL (`log_store`).
//! - A restarted leader never resumes its term (`options`): it may have lost a tail that followers
//!   have.
//! - Reads never depend on a lease (`read_index`).
//! - The log is discarded only as far as the state is flushed (`retention`). What was committed and
//!   not flushed is applied again at start (`recovery`).
//! - A node whose next entry is discarded gets the flushed state (`snapshot`), whole or not at all.

mod applier;
mod apply;
mod bus;
mod clocks;
mod codec;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod links;
mod log_store;
mod message;
mod model;
mod network;
mod observer;
mod options;
mod payload;
mod raft;
mod read_index;
mod recovery;
mod retention;
mod server;
mod snapshot;
mod state;
mod state_machine;
mod type_config;
mod vote_record;

#[cfg(test)]
mod golden;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod testing_state;

pub use apply::{AppliedEntry, AppliedSubBatch, ApplyError, EntryApplier};
pub use bus::{BusError, HandleError, PeerBus, PeerClass, PeerHandler, SendPermit};
pub use error::{ProposeError, RaftError, ReadError, StartError};
pub use message::{EnvelopeError, NODE_KIND_FIRST, PEER_MESSAGE_VERSION, PeerReply, PeerRequest};
pub use model::{
    AppendError, Batch, BatchBuilder, BatchNumber, BatchRef, Boot, COMMAND_BYTES_MAX,
    COMMAND_HEAD_BYTES_MAX, ChainHash, ClientId, ClusterId, Command, CommandHead, CommandOpcode,
    CommandRef, CommandReply, Commands, Condition, ConditionRef, DatabaseId, DecodeError,
    ENTRY_BYTES_MAX, ENTRY_BYTES_TARGET, ENTRY_COMMANDS_MAX, Entry, EntryBuilder, EntryFull,
    EntryOutcome, GroupId, KEY_BYTES_MAX, LogIndex, Member, NodeId, Operation, OperationError,
    OperationRef, ParseClusterIdError, ReplyStatus, Revision, StampMillis, SubBatch,
    SubBatchBuilder, SubBatchId, SubBatchOutcome, Term, VALUE_BYTES_MAX, decode_replies,
    encode_replies,
};
pub use observer::{ApplyObserver, OwnSubBatch};
pub use options::{RaftOptions, RaftParts, Timing};
pub use raft::{Proposal, Raft, RaftStatus, Role, SnapshotStatus, StopReason};
pub use read_index::ReadPoint;
pub use retention::LogRetention;
pub use state::{
    AppliedRecord, CachedRecord, ChainRecord, Limits, MembershipRecord, MetaKey, NodeProgress,
    Page, PageLimits, Record, Scan, ScanRange, StateError, StateKey, StateReader, StateView,
};
