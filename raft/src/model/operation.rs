//! The bodies of the commands that this version executes.
//!
//! The layouts of the reserved opcodes are drawn in `docs/formats/entry.md` and get a variant here
//! when they are built.

use bytes::{BufMut, Bytes, BytesMut};

use kelp_storage::DatabaseId;

use super::batch::{Batch, BatchRef};
use super::codec::{DecodeError, SliceReader, shared};
use super::command::{Command, CommandHead, CommandOpcode, CommandRef};
use super::condition::{Condition, ConditionRef};
use super::limits::KEY_BYTES_MAX;

const ACTION_PUT: u8 = 1;
const ACTION_DELETE: u8 = 2;

/// Why a well-formed command is not an operation of this version. Each becomes a refusal, equal on
/// all replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OperationError {
    /// The opcode is reserved for a later version, or unknown.
    #[error("opcode {:#04x} is not executed by this version", .0.get())]
    Opcode(CommandOpcode),
    /// A flag is not one of the opcode's.
    #[error("unknown flags {flags:#04x}")]
    Flags {
        /// All flags of the command.
        flags: u8,
    },
    /// The body is not laid out as the opcode says.
    #[error("the body is malformed")]
    Body,
}

/// What a command does, with its own bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// Writes `key`, whatever it held; reads nothing.
    Put {
        /// The user's key.
        key: Bytes,
        /// The new value.
        value: Bytes,
    },
    /// Removes `key` and says whether it existed.
    Delete {
        /// The user's key.
        key: Bytes,
    },
    /// Writes or removes `key` if a condition holds of it; nothing is changed otherwise.
    CompareAndSwap {
        /// The user's key.
        key: Bytes,
        /// What must hold.
        condition: Condition,
        /// The new value; `None` removes the key.
        value: Option<Bytes>,
    },
    /// Several puts and deletes under one revision, all of which are executed or none.
    Batch(Batch),
    /// Adds to the decimal integer in `key`; an absent key counts as 0.
    Increment {
        /// The user's key.
        key: Bytes,
        /// What is added.
        delta: i64,
    },
    /// Appends to the value of `key`; an absent key counts as empty.
    Append {
        /// The user's key.
        key: Bytes,
        /// What is appended.
        value: Bytes,
    },
    /// Removes the first keys of a range.
    DeleteRange {
        /// The most keys that it removes; it also stops at limits of the format.
        count_max: u32,
        /// Where the range begins; empty: at the first key of the database.
        first: Bytes,
        /// The key after its last one; empty: it ends with the database.
        end: Bytes,
    },
    /// Says which data directory the node of the sub-batch runs on; refused when it had another.
    Announce {
        /// The name of the directory.
        directory: DatabaseId,
    },
}

impl Operation {
    /// The same operation, borrowed.
    pub fn borrow(&self) -> OperationRef<'_> {
        match self {
            Self::Put { key, value } => OperationRef::Put { key, value },
            Self::Delete { key } => OperationRef::Delete { key },
            Self::CompareAndSwap {
                key,
                condition,
                value,
            } => OperationRef::CompareAndSwap {
                key,
                condition: condition.borrow(),
                value: value.as_deref(),
            },
            Self::Batch(batch) => OperationRef::Batch(batch.borrow()),
            Self::Increment { key, delta } => OperationRef::Increment { key, delta: *delta },
            Self::Append { key, value } => OperationRef::Append { key, value },
            Self::DeleteRange {
                count_max,
                first,
                end,
            } => OperationRef::DeleteRange {
                count_max: *count_max,
                first,
                end,
            },
            Self::Announce { directory } => OperationRef::Announce {
                directory: *directory,
            },
        }
    }

    /// A command of `database` that belongs to no session.
    ///
    /// # Panics
    /// If a key is longer than [`KEY_BYTES_MAX`]: the door refuses those.
    pub fn command(&self, database: u8) -> Command {
        let operation = self.borrow();
        let mut body = BytesMut::with_capacity(operation.body_bytes());
        operation.encode_body_into(&mut body);
        Command::new(
            CommandHead::new(operation.opcode(), database),
            body.freeze(),
        )
    }

    /// Reads the body of `command`; keys and values share its memory.
    pub fn decode(command: &Command) -> Result<Self, OperationError> {
        let body = &command.body;
        let head = command.head();
        Ok(match OperationRef::decode(&CommandRef { head, body })? {
            OperationRef::Put { key, value } => Self::Put {
                key: shared(body, key),
                value: shared(body, value),
            },
            OperationRef::Delete { key } => Self::Delete {
                key: shared(body, key),
            },
            OperationRef::CompareAndSwap {
                key,
                condition,
                value,
            } => Self::CompareAndSwap {
                key: shared(body, key),
                condition: condition.share(body),
                value: value.map(|value| shared(body, value)),
            },
            OperationRef::Batch(_) => Self::Batch(Batch {
                bytes: body.clone(),
            }),
            OperationRef::Increment { key, delta } => Self::Increment {
                key: shared(body, key),
                delta,
            },
            OperationRef::Append { key, value } => Self::Append {
                key: shared(body, key),
                value: shared(body, value),
            },
            OperationRef::DeleteRange {
                count_max,
                first,
                end,
            } => Self::DeleteRange {
                count_max,
                first: shared(body, first),
                end: shared(body, end),
            },
            OperationRef::Announce { directory } => Self::Announce { directory },
        })
    }
}

/// What a command does, with its bytes where they were read: from a socket or from the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OperationRef<'a> {
    /// Writes `key`, whatever it held; reads nothing.
    Put {
        /// The user's key.
        key: &'a [u8],
        /// The new value.
        value: &'a [u8],
    },
    /// Removes `key` and says whether it existed.
    Delete {
        /// The user's key.
        key: &'a [u8],
    },
    /// Writes or removes `key` if a condition holds of it; nothing is changed otherwise.
    CompareAndSwap {
        /// The user's key.
        key: &'a [u8],
        /// What must hold.
        condition: ConditionRef<'a>,
        /// The new value; `None` removes the key.
        value: Option<&'a [u8]>,
    },
    /// Several puts and deletes under one revision, all of which are executed or none.
    Batch(BatchRef<'a>),
    /// Adds to the decimal integer in `key`; an absent key counts as 0.
    Increment {
        /// The user's key.
        key: &'a [u8],
        /// What is added.
        delta: i64,
    },
    /// Appends to the value of `key`; an absent key counts as empty.
    Append {
        /// The user's key.
        key: &'a [u8],
        /// What is appended.
        value: &'a [u8],
    },
    /// Removes the first keys of a range.
    DeleteRange {
        /// The most keys that it removes; it also stops at limits of the format.
        count_max: u32,
        /// Where the range begins; empty: at the first key of the database.
        first: &'a [u8],
        /// The key after its last one; empty: it ends with the database.
        end: &'a [u8],
    },
    /// Says which data directory the node of the sub-batch runs on; refused when it had another.
    Announce {
        /// The name of the directory.
        directory: DatabaseId,
    },
}

impl<'a> OperationRef<'a> {
    /// The opcode of the operation.
    pub const fn opcode(&self) -> CommandOpcode {
        match self {
            Self::Put { .. } => CommandOpcode::PUT,
            Self::Delete { .. } => CommandOpcode::DELETE,
            Self::CompareAndSwap { .. } => CommandOpcode::COMPARE_AND_SWAP,
            Self::Batch(_) => CommandOpcode::BATCH,
            Self::Increment { .. } => CommandOpcode::INCREMENT,
            Self::Append { .. } => CommandOpcode::APPEND,
            Self::DeleteRange { .. } => CommandOpcode::DELETE_RANGE,
            Self::Announce { .. } => CommandOpcode::ANNOUNCE,
        }
    }

    /// Bytes of the encoded body.
    pub const fn body_bytes(&self) -> usize {
        match self {
            Self::Put { key, value } | Self::Append { key, value } => 2 + key.len() + value.len(),
            Self::Delete { key } => key.len(),
            Self::CompareAndSwap {
                key,
                condition,
                value,
            } => {
                let action_bytes = match value {
                    Some(value) => 2 + key.len() + value.len(),
                    None => key.len(),
                };
                condition.encoded_bytes() + 1 + action_bytes
            }
            Self::Batch(batch) => batch.as_bytes().len(),
            Self::Increment { key, .. } => 8 + key.len(),
            Self::DeleteRange { first, end, .. } => 4 + 2 + first.len() + end.len(),
            Self::Announce { directory } => directory.as_bytes().len(),
        }
    }

    /// Appends the encoded body.
    ///
    /// # Panics
    /// If a key is longer than [`KEY_BYTES_MAX`]: the door refuses those.
    pub fn encode_body_into(&self, out: &mut BytesMut) {
        match self {
            Self::Put { key, value } | Self::Append { key, value } => {
                put_key(key, out);
                out.put_slice(value);
            }
            Self::Delete { key } => out.put_slice(key),
            Self::CompareAndSwap {
                key,
                condition,
                value,
            } => {
                condition.encode_into(out);
                if let Some(value) = value {
                    out.put_u8(ACTION_PUT);
                    put_key(key, out);
                    out.put_slice(value);
                } else {
                    out.put_u8(ACTION_DELETE);
                    out.put_slice(key);
                }
            }
            Self::Batch(batch) => out.put_slice(batch.as_bytes()),
            Self::Increment { key, delta } => {
                out.put_i64(*delta);
                out.put_slice(key);
            }
            Self::DeleteRange {
                count_max,
                first,
                end,
            } => {
                out.put_u32(*count_max);
                put_key(first, out);
                out.put_slice(end);
            }
            Self::Announce { directory } => out.put_slice(directory.as_bytes()),
        }
    }

    /// Reads the body of `command`. Sizes of keys and values are not judged here: their limits are
    /// replicated state.
    pub fn decode(command: &CommandRef<'a>) -> Result<Self, OperationError> {
        let CommandHead { opcode, flags, .. } = command.head;
        let operation = match opcode {
            CommandOpcode::PUT => read_put(command.body)?,
            CommandOpcode::DELETE => Self::Delete { key: command.body },
            CommandOpcode::COMPARE_AND_SWAP => read_compare_and_swap(command.body)?,
            CommandOpcode::BATCH => Self::Batch(BatchRef::decode(command.body)?),
            CommandOpcode::INCREMENT => read_increment(command.body)?,
            CommandOpcode::APPEND => match read_put(command.body)? {
                Self::Put { key, value } => Self::Append { key, value },
                other => other,
            },
            CommandOpcode::DELETE_RANGE => read_delete_range(command.body)?,
            CommandOpcode::ANNOUNCE => Self::Announce {
                directory: <[u8; 16]>::try_from(command.body)
                    .map(DatabaseId::from_bytes)
                    .map_err(|_| OperationError::Body)?,
            },
            _ => return Err(OperationError::Opcode(opcode)),
        };
        if flags == 0 {
            Ok(operation)
        } else {
            Err(OperationError::Flags { flags })
        }
    }
}

impl From<DecodeError> for OperationError {
    fn from(_: DecodeError) -> Self {
        Self::Body
    }
}

fn put_key(key: &[u8], out: &mut BytesMut) {
    assert!(
        key.len() <= KEY_BYTES_MAX,
        "a key of {} bytes passed the door",
        key.len()
    );
    let key_bytes = u16::try_from(key.len()).expect("the key limit fits a u16");
    out.put_u16(key_bytes);
    out.put_slice(key);
}

fn read_key<'a>(reader: &mut SliceReader<'a>) -> Result<&'a [u8], DecodeError> {
    let key_bytes = reader.u16()?;
    reader.take(usize::from(key_bytes))
}

fn read_put(body: &[u8]) -> Result<OperationRef<'_>, OperationError> {
    let mut reader = SliceReader::new(body, "put");
    Ok(OperationRef::Put {
        key: read_key(&mut reader)?,
        value: reader.take_rest(),
    })
}

fn read_compare_and_swap(body: &[u8]) -> Result<OperationRef<'_>, OperationError> {
    let mut reader = SliceReader::new(body, "cas");
    let condition = ConditionRef::read(&mut reader)?;
    let (key, value) = match reader.u8()? {
        ACTION_PUT => (read_key(&mut reader)?, Some(reader.take_rest())),
        ACTION_DELETE => (reader.take_rest(), None),
        _ => return Err(OperationError::Body),
    };
    Ok(OperationRef::CompareAndSwap {
        key,
        condition,
        value,
    })
}

fn read_increment(body: &[u8]) -> Result<OperationRef<'_>, OperationError> {
    let mut reader = SliceReader::new(body, "incr");
    Ok(OperationRef::Increment {
        delta: i64::from_be_bytes(reader.array()?),
        key: reader.take_rest(),
    })
}

fn read_delete_range(body: &[u8]) -> Result<OperationRef<'_>, OperationError> {
    let mut reader = SliceReader::new(body, "delete range");
    Ok(OperationRef::DeleteRange {
        count_max: reader.u32()?,
        first: read_key(&mut reader)?,
        end: reader.take_rest(),
    })
}
