//! What the replicated log has built: the `state` keyspace of one group, its keys, its records and
//! how to read them.
//!
//! The layout is drawn in `docs/formats/state.md`. Only [`apply`](crate::apply) writes here, so
//! everything below is either a codec or a read. Readers get a [`StateView`]: an engine
//! point-in-time view in which data, replicated clock and applied position belong together.
//!
//! The keyspace is not in the write-ahead log; the Raft log is. Each flushed state is therefore the
//! exact result of a prefix of the log.

mod key;
mod meta;
mod progress;
mod record;
mod scan;
mod view;

#[cfg(test)]
mod tests;

use bytes::Bytes;
use kelp_storage::StorageError;

use crate::model::DecodeError;

pub(crate) use key::put_record_key;
pub use key::{MetaKey, StateKey};
#[cfg(test)]
pub(crate) use meta::encode_revision_base;
pub use meta::{AppliedRecord, ChainRecord, Limits, MembershipRecord};
pub(crate) use meta::{decode_directory, decode_revision_base, encode_directory};
pub use progress::NodeProgress;
pub use record::Record;
pub(crate) use record::{RECORD_HEAD_BYTES, put_record_head};
pub use scan::{Page, PageLimits, Scan, ScanRange};
pub use view::{CachedRecord, StateReader, StateView};

/// A read of the state that cannot be answered. The node must stop: its copy is broken.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The engine failed.
    #[error("the engine failed to read the state")]
    Storage(#[from] StorageError),
    /// A key or a value is not as the layout says.
    #[error("the state is corrupt at key {key:?}")]
    Corrupt {
        /// The engine's key.
        key: Bytes,
        /// What is wrong with it.
        source: DecodeError,
    },
}

impl StateError {
    pub(crate) fn corrupt(key: &[u8], source: DecodeError) -> Self {
        Self::Corrupt {
            key: Bytes::copy_from_slice(key),
            source,
        }
    }
}
