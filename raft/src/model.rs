//! What the replicated log says: commands, the entries that carry them and the outcomes of applying
//! them.
//!
//! Pure data and its codecs. Nothing here knows openraft, the engine, a clock or a socket, so the
//! proposer, the peer link and the state machine share these types. Bytes are big endian, versioned
//! and bounded; they are drawn in `docs/formats/entry.md`.
//!
//! ```text
//! Operation -> Command -> SubBatch (one node's commands) -> Entry (one log entry)
//! CommandReply <---------- SubBatchOutcome <--------------- EntryOutcome
//! ```

mod batch;
mod codec;
mod command;
mod condition;
mod entry;
mod ids;
mod limits;
mod member;
mod operation;
mod outcome;
mod reply;
mod sub_batch;

#[cfg(test)]
mod tests;

pub use batch::{Batch, BatchBuilder, BatchRef};
pub use codec::DecodeError;
pub(crate) use codec::SliceReader;
pub use command::{Command, CommandHead, CommandOpcode, CommandRef, Commands};
pub use condition::{Condition, ConditionRef};
pub(crate) use entry::ENTRY_VERSION;
pub use entry::{Entry, EntryBuilder, EntryFull};
pub use ids::{
    BatchNumber, ChainHash, ClientId, ClusterId, GroupId, NodeId, ParseClusterIdError, Revision,
    StampMillis, Term,
};
pub use kelp_storage::{Boot, DatabaseId, LogIndex};
pub use limits::{
    COMMAND_BYTES_MAX, COMMAND_HEAD_BYTES_MAX, ENTRY_BYTES_MAX, ENTRY_BYTES_TARGET,
    ENTRY_COMMANDS_MAX, KEY_BYTES_MAX, VALUE_BYTES_MAX,
};
pub(crate) use limits::{DELETE_RANGE_BYTES_MAX, DELETE_RANGE_KEYS_MAX, ENTRY_WORK_MAX};
pub use member::Member;
pub use operation::{Operation, OperationError, OperationRef};
pub use outcome::{EntryOutcome, SubBatchOutcome};
pub use reply::{CommandReply, ReplyStatus, decode_replies, encode_replies};
pub use sub_batch::{AppendError, SubBatch, SubBatchBuilder, SubBatchId};
