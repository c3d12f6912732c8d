//! Executes the commands of a sub-batch, each seeing the effects of those before it.
//!
//! A put reads nothing. What must read asks the batch first and then the view. Everything that is
//! written is copied once, into one buffer per entry that the keys and records then share. What a
//! command does beyond what its own bytes ask for counts as work of the entry, which has a bound.

mod change;
mod range;

use bytes::{Bytes, BytesMut};
use kelp_storage::{DatabaseId, IndexedBatch, ReadView};

use super::ApplyError;
use crate::model::{
    CommandRef, CommandReply, Commands, DecodeError, ENTRY_WORK_MAX, NodeId, OperationError,
    OperationRef, ReplyStatus, Revision, StampMillis, SubBatch, SubBatchId, SubBatchOutcome,
    decode_replies,
};
use crate::state::{
    Limits, Record, StateError, StateKey, decode_directory, encode_directory, put_record_head,
    put_record_key,
};

/// The execution of one entry.
pub(super) struct Execution<'a> {
    /// The state before the batch.
    pub(super) view: &'a ReadView,
    /// What is changed on top of it.
    pub(super) batch: &'a mut IndexedBatch,
    /// Where keys and values are put together before they are cut off and shared.
    pub(super) arena: BytesMut,
    /// The replicated time of the entry.
    pub(super) clock: StampMillis,
    /// The replicated limits.
    pub(super) limits: Limits,
    /// The revision of the next command.
    pub(super) next_revision: Revision,
    /// Work of the entry so far, at most about [`ENTRY_WORK_MAX`].
    pub(super) work: usize,
}

impl Execution<'_> {
    /// Executes all commands and returns one reply for each that the head of the sub-batch
    /// promises.
    pub(super) fn run(&mut self, sub_batch: &SubBatch) -> Result<Vec<CommandReply>, ApplyError> {
        let count = sub_batch.command_count.try_into().unwrap_or(0);
        let mut replies = Vec::with_capacity(count);
        let first = self.next_revision.get();
        for (position, command) in (0_u64..).zip(Commands::new(&sub_batch.commands).take(count)) {
            // Positions have 16 bits of their own: the sum cannot overflow, see `first_revision`.
            let revision = Revision::new(first + position);
            replies.push(match command {
                Ok(command) => self.run_command(sub_batch.id.node, &command, revision)?,
                Err(_) => CommandReply::of(ReplyStatus::Malformed),
            });
        }
        replies.resize(count, CommandReply::of(ReplyStatus::Malformed));
        self.skip(sub_batch);
        Ok(replies)
    }

    /// Passes over the positions of a sub-batch, so that they are those of the entry, executed or
    /// not.
    pub(super) fn skip(&mut self, sub_batch: &SubBatch) {
        let count = u64::from(sub_batch.command_count);
        self.next_revision = Revision::new(self.next_revision.get() + count);
    }

    /// The replies of a sub-batch that was executed earlier, perhaps by this very batch.
    pub(super) fn stored_replies(&self, id: SubBatchId) -> Result<Vec<CommandReply>, StateError> {
        let key = StateKey::SubBatchResult(id).encode();
        let corrupt = |source| StateError::corrupt(&key, source);
        let value = self
            .read(&key)?
            .ok_or_else(|| corrupt(DecodeError::malformed("missing sub-batch result")))?;
        decode_replies(&value).map_err(corrupt)
    }

    /// The encoded outcome.
    pub(super) fn encode(&mut self, outcome: &SubBatchOutcome) -> Bytes {
        outcome.encode_into(&mut self.arena);
        self.cut()
    }

    fn run_command(
        &mut self,
        node: NodeId,
        command: &CommandRef<'_>,
        revision: Revision,
    ) -> Result<CommandReply, StateError> {
        let operation = match OperationRef::decode(command) {
            Ok(operation) => operation,
            Err(error) => return Ok(CommandReply::of(refusal(error))),
        };
        if let Some(status) = self.check_limits(&operation) {
            return Ok(CommandReply::of(status));
        }
        let database = command.head.database;
        match operation {
            OperationRef::Put { key, value } => {
                self.put(database, key, value, revision);
                Ok(CommandReply::done(revision))
            }
            OperationRef::Delete { key } => self.delete(database, key, revision),
            OperationRef::CompareAndSwap {
                key,
                condition,
                value,
            } => self.compare_and_swap(database, key, condition, value, revision),
            OperationRef::Batch(batch) => self.batch(database, batch, revision),
            OperationRef::Increment { key, delta } => {
                self.increment(database, key, delta, revision)
            }
            OperationRef::Append { key, value } => self.append(database, key, value, revision),
            OperationRef::DeleteRange {
                count_max,
                first,
                end,
            } => self.delete_range(database, count_max, (first, end), revision),
            OperationRef::Announce { directory } => self.announce(node, directory, revision),
        }
    }

    fn put(&mut self, database: u8, key: &[u8], value: &[u8], revision: Revision) {
        let key = self.record_key(database, key);
        put_record_head(revision, None, &mut self.arena);
        self.arena.extend_from_slice(value);
        let record = self.cut();
        self.batch.put(key, record);
    }

    fn delete(
        &mut self,
        database: u8,
        key: &[u8],
        revision: Revision,
    ) -> Result<CommandReply, StateError> {
        let key = self.record_key(database, key);
        let Some(value) = self.read(&key)? else {
            return Ok(CommandReply::of(ReplyStatus::NotFound));
        };
        let record = Record::decode(&value).map_err(|source| StateError::corrupt(&key, source))?;
        let dead = record.is_dead_at(self.clock);
        self.batch.delete(key);
        if dead {
            return Ok(CommandReply::of(ReplyStatus::NotFound));
        }
        Ok(CommandReply::done(revision))
    }

    /// The first directory that a node announces is its own for ever: another one has forgotten
    /// what the node voted for and acknowledged.
    fn announce(
        &mut self,
        node: NodeId,
        directory: DatabaseId,
        revision: Revision,
    ) -> Result<CommandReply, StateError> {
        let key = StateKey::NodeDirectory { node }.encode();
        if let Some(value) = self.read(&key)? {
            let known =
                decode_directory(&value).map_err(|source| StateError::corrupt(&key, source))?;
            if known != directory {
                return Ok(CommandReply::of(ReplyStatus::Forbidden));
            }
        } else {
            self.batch.put(key, encode_directory(directory));
        }
        Ok(CommandReply::done(revision))
    }

    /// The engine's value of `key` as the commands so far have left it.
    fn read(&self, key: &[u8]) -> Result<Option<Bytes>, StateError> {
        match self.batch.get(key) {
            Some(pending) => Ok(pending),
            None => Ok(self.view.get(key)?),
        }
    }

    /// What the engine's `key` holds, if it has not died.
    fn read_live(&self, key: &[u8]) -> Result<Option<Record>, StateError> {
        let Some(value) = self.read(key)? else {
            return Ok(None);
        };
        let record = Record::decode(&value).map_err(|source| StateError::corrupt(key, source))?;
        Ok((!record.is_dead_at(self.clock)).then_some(record))
    }

    /// Why the operation is refused whatever the state holds.
    fn check_limits(&self, operation: &OperationRef<'_>) -> Option<ReplyStatus> {
        match operation {
            OperationRef::Put { key, value } | OperationRef::Append { key, value } => {
                self.check_record(key, value.len())
            }
            OperationRef::Delete { key } | OperationRef::Increment { key, .. } => {
                self.check_record(key, 0)
            }
            OperationRef::CompareAndSwap { key, value, .. } => {
                self.check_record(key, value.map_or(0, <[u8]>::len))
            }
            OperationRef::Batch(batch) => batch.parts().find_map(|part| self.check_limits(&part)),
            OperationRef::DeleteRange { .. } | OperationRef::Announce { .. } => None,
        }
    }

    fn check_record(&self, key: &[u8], value_bytes: usize) -> Option<ReplyStatus> {
        let over =
            |bytes: usize, limit: u32| u32::try_from(bytes).map_or(true, |bytes| bytes > limit);
        if key.is_empty() {
            Some(ReplyStatus::KeyEmpty)
        } else if over(key.len(), self.limits.key_bytes_max) {
            Some(ReplyStatus::KeyTooLong)
        } else if over(value_bytes, self.limits.value_bytes_max) {
            Some(ReplyStatus::ValueTooLarge)
        } else {
            None
        }
    }

    /// The engine's key of a user's key.
    fn record_key(&mut self, database: u8, key: &[u8]) -> Bytes {
        put_record_key(database, key, &mut self.arena);
        self.cut()
    }

    /// Takes note of work; false when the entry has done too much before it.
    fn may_work(&mut self, work: usize) -> bool {
        let may = self.work < ENTRY_WORK_MAX;
        if may {
            self.work += work;
        }
        may
    }

    /// What was put together in the arena since the last cut.
    fn cut(&mut self) -> Bytes {
        self.arena.split().freeze()
    }
}

/// How a command is answered that is no operation of this version.
fn refusal(error: OperationError) -> ReplyStatus {
    match error {
        OperationError::Opcode(_) => ReplyStatus::UnknownOpcode,
        OperationError::Flags { .. } => ReplyStatus::UnknownFlags,
        OperationError::Body => ReplyStatus::Malformed,
    }
}
