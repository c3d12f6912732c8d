//! What is handed to the applier at once.

use openraft::storage::ApplyResponder;

use crate::type_config::{LogId, LogPayload, RaftEntry, StoredMembership, TypeConfig};

/// Entries to apply together, with those who wait for their outcomes.
#[derive(Default)]
pub(crate) struct Chunk {
    pub(super) entries: Vec<(RaftEntry, Option<ApplyResponder<TypeConfig>>)>,
    bytes: usize,
}

impl Chunk {
    pub(crate) fn push(
        &mut self,
        entry: RaftEntry,
        bytes: usize,
        responder: Option<ApplyResponder<TypeConfig>>,
    ) {
        self.entries.push((entry, responder));
        self.bytes += bytes;
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn last(&self) -> Option<LogId> {
        self.entries.last().map(|(entry, _)| entry.log_id)
    }

    /// The last membership in it.
    pub(crate) fn last_membership(&self) -> Option<StoredMembership> {
        self.entries
            .iter()
            .rev()
            .find_map(|(entry, _)| match &entry.payload {
                LogPayload::Membership(membership) => Some(StoredMembership::new(
                    Some(entry.log_id),
                    membership.clone(),
                )),
                _ => None,
            })
    }
}
