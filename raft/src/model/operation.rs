//! The bodies of the commands that this version executes.
//!
//! The layouts of the reserved opcodes are drawn in `docs/formats/entry.md` and get a variant here
//! when they are built.

use bytes::{BufMut, Bytes, BytesMut};

use kelp_storage::DatabaseId;

use super::codec::{SliceReader, shared};
use super::command::{Command, CommandHead, CommandOpcode, CommandRef};
use super::limits::KEY_BYTES_MAX;

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

    /// Reads the body of `command`; key and value share its memory.
    pub fn decode(command: &Command) -> Result<Self, OperationError> {
        let body = &command.body;
        Ok(
            match OperationRef::decode(&CommandRef {
                head: command.head(),
                body,
            })? {
                OperationRef::Put { key, value } => Self::Put {
                    key: shared(body, key),
                    value: shared(body, value),
                },
                OperationRef::Delete { key } => Self::Delete {
                    key: shared(body, key),
                },
                OperationRef::Announce { directory } => Self::Announce { directory },
            },
        )
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
            Self::Announce { .. } => CommandOpcode::ANNOUNCE,
        }
    }

    /// Bytes of the encoded body.
    pub const fn body_bytes(&self) -> usize {
        match self {
            Self::Put { key, value } => 2 + key.len() + value.len(),
            Self::Delete { key } => key.len(),
            Self::Announce { directory } => directory.as_bytes().len(),
        }
    }

    /// Appends the encoded body.
    ///
    /// # Panics
    /// If a key is longer than [`KEY_BYTES_MAX`]: the door refuses those.
    pub fn encode_body_into(&self, out: &mut BytesMut) {
        match self {
            Self::Put { key, value } => {
                assert!(
                    key.len() <= KEY_BYTES_MAX,
                    "a key of {} bytes passed the door",
                    key.len()
                );
                let key_bytes = u16::try_from(key.len()).expect("the key limit fits a u16");
                out.put_u16(key_bytes);
                out.put_slice(key);
                out.put_slice(value);
            }
            Self::Delete { key } => out.put_slice(key),
            Self::Announce { directory } => out.put_slice(directory.as_bytes()),
        }
    }

    /// Reads the body of `command`. Sizes of keys and values are not judged here: their limits are
    /// replicated state.
    pub fn decode(command: &CommandRef<'a>) -> Result<Self, OperationError> {
        let CommandHead { opcode, flags, .. } = command.head;
        let operation = match opcode {
            CommandOpcode::PUT => {
                let mut reader = SliceReader::new(command.body, "put");
                let key_bytes = reader.u16().map_err(|_| OperationError::Body)?;
                let key = reader
                    .take(usize::from(key_bytes))
                    .map_err(|_| OperationError::Body)?;
                Self::Put {
                    key,
                    value: reader.take_rest(),
                }
            }
            CommandOpcode::DELETE => Self::Delete { key: command.body },
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
