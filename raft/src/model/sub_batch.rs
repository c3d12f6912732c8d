//! The commands that one node sends as one piece, under a number that makes their execution unique.
//!
//! A node numbers its sub-batches 1, 2, 3 ... within one boot. It may send one again, unchanged,
//! after a broken link or a change of leader; apply executes each of them once. The commands are
//! encoded when they arrive and only copied after that.

use bytes::{BufMut, Bytes, BytesMut};

use super::Boot;
use super::codec::{DecodeError, SliceReader, length_u32, shared};
use super::command::{Command, CommandHead, Commands};
use super::ids::{BatchNumber, NodeId};
use super::limits::{
    COMMAND_BYTES_MAX, COMMAND_HEAD_BYTES_MIN, ENTRY_BYTES_TARGET, ENTRY_COMMANDS_MAX,
};
use super::operation::OperationRef;

/// Node, boot, batch, floor, count and length.
pub(crate) const SUB_BATCH_HEAD_BYTES: usize = 2 + 8 + 8 + 8 + 4 + 4;

/// The name of a sub-batch, unique for ever in its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubBatchId {
    /// The node that took the commands.
    pub node: NodeId,
    /// That node's boot.
    pub boot: Boot,
    /// The number within the boot.
    pub batch: BatchNumber,
}

/// The commands that one node sends as one piece.
///
/// Invariants: `command_count` is the number of commands in `commands` and at most
/// [`ENTRY_COMMANDS_MAX`]; `commands` is at most [`COMMAND_BYTES_MAX`] long. A decoded sub-batch is
/// held to the limits, and to the count by [`check_commands`](Self::check_commands).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubBatch {
    /// Its name.
    pub id: SubBatchId,
    /// The lowest batch whose answer the node still waits for; results below it may be dropped.
    pub floor: BatchNumber,
    /// The number of commands.
    pub command_count: u32,
    /// The encoded commands, one after the other.
    pub commands: Bytes,
}

impl SubBatch {
    /// Bytes of the encoded sub-batch.
    pub fn encoded_bytes(&self) -> usize {
        SUB_BATCH_HEAD_BYTES + self.commands.len()
    }

    /// Appends the encoded sub-batch to `out`: a head and a copy of the commands.
    pub fn encode_into(&self, out: &mut BytesMut) {
        out.reserve(self.encoded_bytes());
        out.put_u16(self.id.node.get());
        out.put_u64(self.id.boot.get());
        out.put_u64(self.id.batch.get());
        out.put_u64(self.floor.get());
        out.put_u32(self.command_count);
        out.put_u32(length_u32(self.commands.len()));
        out.put_slice(&self.commands);
    }

    /// The encoded sub-batch.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(self.encoded_bytes());
        self.encode_into(&mut out);
        out.freeze()
    }

    /// Reads a sub-batch that takes up all of `bytes`; the commands share its memory and are not
    /// read.
    pub fn decode(bytes: &Bytes) -> Result<Self, DecodeError> {
        let mut reader = SliceReader::new(bytes, "sub-batch");
        let sub_batch = Self::read(&mut reader, bytes)?;
        reader.finish()?;
        Ok(sub_batch)
    }

    pub(crate) fn read(reader: &mut SliceReader<'_>, whole: &Bytes) -> Result<Self, DecodeError> {
        let node = NodeId::new(reader.u16()?);
        let boot = Boot::new(reader.u64()?);
        let batch = BatchNumber::new(reader.u64()?);
        let floor = BatchNumber::new(reader.u64()?);
        let command_count = reader.u32()?;
        let commands_bytes = reader.length()?;
        let commands = reader.take(commands_bytes)?;
        let count = usize::try_from(command_count).map_err(|_| reader.malformed())?;
        let fits = count <= ENTRY_COMMANDS_MAX
            && count <= commands_bytes / COMMAND_HEAD_BYTES_MIN
            && commands_bytes <= COMMAND_BYTES_MAX;
        if !fits || batch < BatchNumber::FIRST {
            return Err(reader.malformed());
        }
        let id = SubBatchId { node, boot, batch };
        Ok(Self {
            id,
            floor,
            command_count,
            commands: shared(whole, commands),
        })
    }

    /// The commands, read one by one.
    pub fn commands(&self) -> Commands<'_> {
        Commands::new(&self.commands)
    }

    /// Checks that the commands are well formed and as many as the head says.
    ///
    /// A proposer does this with every sub-batch from another node: apply would answer the bad
    /// commands with refusals, but an honest node never sends them.
    pub fn check_commands(&self) -> Result<(), DecodeError> {
        let mut count = 0_u32;
        for command in self.commands() {
            command?;
            count += 1;
        }
        if count == self.command_count {
            Ok(())
        } else {
            Err(DecodeError::malformed("sub-batch"))
        }
    }
}

/// Why a command was not appended to a sub-batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The command is over [`COMMAND_BYTES_MAX`] and fits nowhere.
    #[error("a command of {bytes} bytes is over the limit of {COMMAND_BYTES_MAX}")]
    CommandTooLarge {
        /// Bytes of the encoded command.
        bytes: usize,
    },
    /// The sub-batch has reached its target size: send it and append to the next one.
    #[error("the sub-batch is full")]
    Full,
}

/// Collects commands until they are sent.
#[derive(Debug, Default)]
pub struct SubBatchBuilder {
    commands: BytesMut,
    command_count: u32,
}

impl SubBatchBuilder {
    /// An empty sub-batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Bytes of the commands so far.
    pub fn bytes(&self) -> usize {
        self.commands.len()
    }

    /// The number of commands so far.
    pub const fn command_count(&self) -> u32 {
        self.command_count
    }

    /// Whether no command was appended yet.
    pub const fn is_empty(&self) -> bool {
        self.command_count == 0
    }

    /// Appends a command and returns its position in the sub-batch, which is also that of its
    /// reply.
    pub fn append(&mut self, command: &Command) -> Result<usize, AppendError> {
        let position = self.admit(command.encoded_bytes())?;
        command.encode_into(&mut self.commands);
        Ok(position)
    }

    /// Appends an operation straight from borrowed bytes; otherwise like [`append`](Self::append).
    ///
    /// The opcode of `head` is that of `operation`, whatever it says.
    ///
    /// # Panics
    /// If a key is longer than the format allows: the door refuses those.
    pub fn append_operation(
        &mut self,
        head: CommandHead,
        operation: &OperationRef<'_>,
    ) -> Result<usize, AppendError> {
        let head = CommandHead {
            opcode: operation.opcode(),
            ..head
        };
        let body_bytes = operation.body_bytes();
        let encoded_bytes = head.encoded_bytes(body_bytes);
        let position = self.admit(encoded_bytes)?;
        self.commands.reserve(encoded_bytes);
        head.encode_into(body_bytes, &mut self.commands);
        operation.encode_body_into(&mut self.commands);
        Ok(position)
    }

    /// Takes the collected commands as a sub-batch named `id` and starts an empty one.
    pub fn take(&mut self, id: SubBatchId, floor: BatchNumber) -> SubBatch {
        SubBatch {
            id,
            floor,
            command_count: std::mem::take(&mut self.command_count),
            commands: std::mem::take(&mut self.commands).freeze(),
        }
    }

    /// Makes room for a command of `bytes` and gives it the next position.
    fn admit(&mut self, bytes: usize) -> Result<usize, AppendError> {
        if bytes > COMMAND_BYTES_MAX {
            return Err(AppendError::CommandTooLarge { bytes });
        }
        let position = usize::try_from(self.command_count).expect("a u32 fits a usize");
        let over_target = self.commands.len() + bytes > ENTRY_BYTES_TARGET;
        if position == ENTRY_COMMANDS_MAX || (over_target && position > 0) {
            return Err(AppendError::Full);
        }
        self.command_count += 1;
        Ok(position)
    }
}
