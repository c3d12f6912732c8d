//! What a snapshot is to openraft: a handle on files, and what the records in them say.

use std::io;

use kelp_seams::Executor;
use kelp_storage::{Keyspace, PinnedVersion, StagedVersion};
use openraft::SnapshotMeta;
use openraft::type_config::alias::SnapshotOf;

use crate::message::Meta;
use crate::model::DecodeError;
use crate::payload;
use crate::state::{MetaKey, StateError, StateView};
use crate::type_config::{StoredMembership, TypeConfig, log_id_of};

/// The files of a snapshot.
#[derive(Debug)]
pub(crate) enum Image {
    /// A flushed state of this node.
    Pinned(PinnedVersion),
    /// The checked and durable copy of a state of another node.
    Staged(StagedVersion),
}

/// A snapshot as openraft passes it around.
pub(crate) type Snapshot = SnapshotOf<TypeConfig, Image>;

/// The newest flushed state of `keyspace`; `None` when nothing was flushed yet.
pub(crate) async fn pinned(
    executor: &dyn Executor,
    keyspace: &Keyspace,
) -> Result<Option<Snapshot>, io::Error> {
    let pinned = keyspace.pin();
    if pinned.file_count() == 0 {
        return Ok(None);
    }
    let view = StateView::new(pinned.view());
    let meta = kelp_seams::blocking(executor, move || described(&view));
    let meta = meta
        .await
        .map_err(io::Error::other)?
        .map_err(io::Error::other)?;
    Ok(meta.last_log_id.is_some().then_some(Snapshot {
        meta,
        snapshot: Image::Pinned(pinned),
    }))
}

/// What a state says about its place in the log. May read the disk.
pub(crate) fn described(view: &StateView) -> Result<Meta, StateError> {
    let last_membership = match view.membership()? {
        Some(record) => {
            let membership = payload::decode_membership(record.payload).map_err(|_| {
                let source = DecodeError::malformed("membership record");
                StateError::corrupt(&MetaKey::Membership.to_bytes(), source)
            })?;
            StoredMembership::new(Some(log_id_of(record.position)), membership)
        }
        None => StoredMembership::default(),
    };
    Ok(SnapshotMeta {
        last_log_id: view.applied_position()?.map(log_id_of),
        last_membership,
    })
}
