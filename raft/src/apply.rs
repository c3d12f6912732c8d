//! Executes the log: one entry in, operations on the `state` keyspace and answers out.
//!
//! The result is a pure function of the state and the entry. There is no clock here, no randomness,
//! no local configuration and no order that depends on a hash map, so every replica that applies
//! the same entries holds the same bytes and gives the same answers; the chain hash proves it. What
//! an entry changes, data, applied position, clock, membership, results and hash, stands in one
//! batch, so that it becomes visible and durable as one.
//!
//! ```text
//! applied record -> for each sub-batch: admit (deduplicate) -> execute -> store the replies
//!                -> chain hash over payload and answers
//! ```
//!
//! A command that cannot be executed is answered with a refusal, on every replica alike. An error
//! from here means that this replica cannot go on: its disk failed, its state is corrupt or the log
//! is written by a newer version.

mod chain;
mod deduplicate;
mod execute;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::{Bytes, BytesMut};
use kelp_storage::{Direction, IndexedBatch, LogPosition, ReadView};

use crate::model::{
    ChainHash, DecodeError, ENTRY_VERSION, Entry, EntryOutcome, LogIndex, NodeId, Revision,
    StampMillis, SubBatch, SubBatchId, SubBatchOutcome, Term,
};
use crate::state::{
    AppliedRecord, ChainRecord, Limits, MembershipRecord, MetaKey, NodeProgress, RECORD_HEAD_BYTES,
    StateError, StateKey, StateView, decode_revision_base,
};
use chain::ChainHasher;
use deduplicate::Admission;
use execute::Execution;

/// Why a replica cannot go on applying. Nothing of the batch may be written, and the node must
/// stop.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// The state cannot be read.
    #[error("the state cannot be read")]
    State(#[from] StateError),
    /// The entry is corrupt, or of a newer version.
    #[error("entry {index} cannot be read")]
    Payload {
        /// Where it stands.
        index: LogIndex,
        /// What is wrong with it.
        source: DecodeError,
    },
    /// The entry is not the next one.
    #[error("entry {found} was to be applied where {expected} is due")]
    OutOfOrder {
        /// The entry that is due.
        expected: LogIndex,
        /// The entry that was given.
        found: LogIndex,
    },
    /// Revisions have only 48 bits for the position in the log.
    #[error("entry {index} has no revisions left")]
    RevisionsExhausted {
        /// Where it stands.
        index: LogIndex,
    },
}

/// What one entry did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedEntry {
    /// The answers, to be given once the batch is visible.
    pub outcome: EntryOutcome,
    /// The entry's sub-batches in order, as many as there are outcomes.
    pub sub_batches: Vec<AppliedSubBatch>,
}

/// Where the effects of one sub-batch end within the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppliedSubBatch {
    /// Its name.
    pub id: SubBatchId,
    /// The operations in the batch up to and including its own: the state right after it is the one
    /// at sequence number `first + operation_count - 1`. Never 0.
    pub operation_count: usize,
}

/// Applies entries one after the other.
///
/// It keeps the few records that every entry needs. Invariant: they are what a reader of the state
/// finds once all batches are written, so an applier that is loaded anew goes on exactly as the old
/// one would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryApplier {
    applied: Option<AppliedRecord>,
    chain: ChainHash,
    limits: Limits,
    revision_base: Revision,
    nodes: BTreeMap<NodeId, NodeProgress>,
}

impl EntryApplier {
    /// Takes up where the state of `view` ends.
    pub fn load(view: &ReadView) -> Result<Self, StateError> {
        let state = StateView::new(view.clone());
        Ok(Self {
            applied: state.applied_record()?,
            chain: state.chain_hash()?,
            limits: state.limits()?,
            revision_base: state
                .meta(MetaKey::RevisionBase, |value| decode_revision_base(value))?
                .unwrap_or_default(),
            nodes: load_nodes(view)?,
        })
    }

    /// The last applied entry, `None` before the first.
    pub fn applied(&self) -> Option<LogPosition> {
        self.applied.map(|record| record.position)
    }

    /// The largest stamp so far.
    pub fn clock(&self) -> StampMillis {
        self.applied
            .map_or(StampMillis::default(), |record| record.clock)
    }

    /// The hash over everything so far.
    pub fn chain_hash(&self) -> ChainHash {
        self.chain
    }

    /// How far the sub-batches of `node` are executed.
    pub fn progress_of(&self, node: NodeId) -> Option<NodeProgress> {
        self.nodes.get(&node).copied()
    }

    /// Appends to `batch` what the entry at `position` with this `payload` changes, and tells its
    /// answers.
    ///
    /// `view` is the state before the first operation of `batch`; the batch may already hold the
    /// entries in between. The payload is what the log holds: an entry, a membership or a blank,
    /// told apart by the first byte.
    ///
    /// # Errors
    /// The applier and the batch are then useless: stop.
    pub fn apply(
        &mut self,
        position: LogPosition,
        payload: &Bytes,
        view: &ReadView,
        batch: &mut IndexedBatch,
    ) -> Result<AppliedEntry, ApplyError> {
        let index = position.index;
        self.check_order(index)?;
        let entry =
            read_payload(payload).map_err(|source| ApplyError::Payload { index, source })?;
        let stamp = entry
            .as_ref()
            .map_or(StampMillis::default(), |entry| entry.stamp);
        let applied = AppliedRecord {
            position,
            clock: self.clock().max(stamp),
        };
        self.applied = Some(applied);
        batch.put(MetaKey::Applied.to_bytes(), applied.encode());
        if payload.first() == Some(&MEMBERSHIP_VERSION) {
            let record = MembershipRecord {
                position,
                payload: payload.clone(),
            };
            batch.put(MetaKey::Membership.to_bytes(), record.encode());
        }

        let mut hasher = ChainHasher::new(self.chain, index, payload);
        let mut outcomes = Vec::new();
        let mut sub_batches = Vec::new();
        if let Some(entry) = entry {
            let first_revision = self.first_revision(index)?;
            let mut execution = Execution {
                view,
                batch,
                arena: BytesMut::with_capacity(arena_bytes(payload, &entry)),
                clock: applied.clock,
                limits: self.limits,
                next_revision: first_revision,
                work: 0,
            };
            outcomes.reserve(entry.sub_batches.len());
            sub_batches.reserve(entry.sub_batches.len());
            for sub_batch in &entry.sub_batches {
                let outcome = self.apply_sub_batch(sub_batch, &mut execution, &mut hasher)?;
                outcomes.push(outcome);
                let operation_count = execution.batch.len();
                sub_batches.push(AppliedSubBatch {
                    id: sub_batch.id,
                    operation_count,
                });
            }
        }
        self.chain = hasher.finish();
        let chain = ChainRecord {
            index,
            hash: self.chain,
        };
        batch.put(MetaKey::Chain.to_bytes(), chain.encode());
        let term = Term::new(position.term.term);
        let outcome = EntryOutcome {
            index,
            term,
            sub_batches: outcomes,
        };
        Ok(AppliedEntry {
            outcome,
            sub_batches,
        })
    }

    /// Executes a sub-batch if it is the next of its node; otherwise tells why not.
    fn apply_sub_batch(
        &mut self,
        sub_batch: &SubBatch,
        execution: &mut Execution<'_>,
        hasher: &mut ChainHasher,
    ) -> Result<SubBatchOutcome, ApplyError> {
        let id = sub_batch.id;
        let progress = self.nodes.get(&id.node).copied();
        let outcome = match deduplicate::admit(progress.as_ref(), id) {
            Admission::Execute => {
                let outcome = SubBatchOutcome::Executed(execution.run(sub_batch)?);
                let encoded = execution.encode(&outcome);
                hasher.update(&encoded);
                // Behind the kind of the outcome stands the list of replies, which is what the
                // state keeps.
                let replies = encoded.slice(1..);
                let next = deduplicate::advance(progress.as_ref(), id, sub_batch.floor);
                deduplicate::record(progress.as_ref(), id, &next, replies, execution.batch);
                self.nodes.insert(id.node, next);
                return Ok(outcome);
            }
            Admission::Stored => {
                execution.skip(sub_batch);
                SubBatchOutcome::ExecutedEarlier(execution.stored_replies(id)?)
            }
            Admission::Refuse(outcome) => {
                execution.skip(sub_batch);
                outcome
            }
        };
        hasher.update(&execution.encode(&outcome));
        Ok(outcome)
    }

    fn check_order(&self, found: LogIndex) -> Result<(), ApplyError> {
        let expected = match self.applied {
            Some(record) => LogIndex::new(record.position.index.get().saturating_add(1)),
            None => LogIndex::new(0),
        };
        if found == expected {
            Ok(())
        } else {
            Err(ApplyError::OutOfOrder { expected, found })
        }
    }

    /// The revision of the first command of the entry at `index`.
    fn first_revision(&self, index: LogIndex) -> Result<Revision, ApplyError> {
        const POSITION_BITS: u32 = 16;
        let exhausted = ApplyError::RevisionsExhausted { index };
        let number = index.get();
        if number.leading_zeros() < POSITION_BITS {
            return Err(exhausted);
        }
        // The last position of the entry must have a revision, too.
        let last = (number << POSITION_BITS) | u64::from(u16::MAX);
        self.revision_base
            .get()
            .checked_add(last)
            .ok_or(exhausted)?;
        Ok(Revision::new(
            self.revision_base.get() + (number << POSITION_BITS),
        ))
    }
}

/// The first byte of a log payload that is blank.
pub(crate) const BLANK_PAYLOAD: u8 = 0x40;

/// The first byte of a log payload that is a membership of version 1.
pub(crate) const MEMBERSHIP_VERSION: u8 = 0x41;

/// Reads the payload as an entry; `None` when it is blank or a membership.
fn read_payload(payload: &Bytes) -> Result<Option<Entry>, DecodeError> {
    match payload.first() {
        Some(&ENTRY_VERSION) => Entry::decode(payload).map(Some),
        Some(&MEMBERSHIP_VERSION) => Ok(None),
        Some(&BLANK_PAYLOAD) if payload.len() == 1 => Ok(None),
        Some(&version) => Err(DecodeError::Version {
            what: "log payload",
            version,
        }),
        None => Err(DecodeError::malformed("log payload")),
    }
}

/// What keys and values of an entry take once they are records, so that they share one allocation.
fn arena_bytes(payload: &Bytes, entry: &Entry) -> usize {
    /// Prefix of the key, head of the record, and one reply, less the command's own head.
    const COMMAND_OVERHEAD_BYTES: usize = 2 + RECORD_HEAD_BYTES + 2;
    /// The first revision of a list of replies and its own head.
    const SUB_BATCH_OVERHEAD_BYTES: usize = 16;
    let commands = usize::try_from(entry.command_count()).unwrap_or(0);
    payload.len()
        + commands * COMMAND_OVERHEAD_BYTES
        + entry.sub_batches.len() * SUB_BATCH_OVERHEAD_BYTES
}

/// Reads the progress of every node, stepping over the results between them.
fn load_nodes(view: &ReadView) -> Result<BTreeMap<NodeId, NodeProgress>, StateError> {
    let mut nodes = BTreeMap::new();
    let end = StateKey::NodeProgress {
        node: NodeId::new(u16::MAX),
    }
    .encode();
    let mut node = NodeId::new(0);
    loop {
        let start = StateKey::NodeProgress { node }.encode();
        let bounds = (Bound::Included(start), Bound::Included(end.clone()));
        let Some(entry) = view.range(bounds, Direction::Forward).next() else {
            return Ok(nodes);
        };
        let (key, value) = entry?;
        let corrupt = |source| StateError::corrupt(&key, source);
        let StateKey::NodeProgress { node: found } = StateKey::decode(&key).map_err(corrupt)?
        else {
            return Err(corrupt(DecodeError::malformed("node progress key")));
        };
        nodes.insert(found, NodeProgress::decode(&value).map_err(corrupt)?);
        let Some(next) = found.get().checked_add(1) else {
            return Ok(nodes);
        };
        node = NodeId::new(next);
    }
}
