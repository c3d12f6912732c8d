//! One command: what a client asked for, in the form in which it travels through the log.
//!
//! A command is encoded once, by the node that took it, and copied from there on. The head says
//! enough to route and to deduplicate; the body depends on the opcode. An opcode that this version
//! does not execute is still a well-formed command: apply answers it with a refusal, on every
//! replica alike.

use bytes::{BufMut, Bytes, BytesMut};

use super::codec::{DecodeError, SliceReader, length_u32, shared};
use super::ids::ClientId;
use super::limits::{
    COMMAND_BYTES_MAX, COMMAND_HEAD_BYTES_MAX, COMMAND_HEAD_BYTES_MIN, COMMAND_IDENTITY_BYTES,
};

/// What a command does. The numbers are part of the log format; all of them are reserved in
/// `docs/formats/entry.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandOpcode(u8);

/// Declares the opcodes as constants and their names for logs and tools.
macro_rules! opcodes {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        impl CommandOpcode {
            $($(#[$doc])* pub const $name: Self = Self($number);)*

            /// The name of a reserved opcode.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some($text),)*
                    _ => None,
                }
            }
        }
    };
}

opcodes! {
    /// Writes a key, whatever it held.
    PUT = 0x01, "put";
    /// Removes a key and says whether it existed.
    DELETE = 0x02, "delete";
    /// Writes or removes a key if its revision or value is as expected.
    COMPARE_AND_SWAP = 0x03, "cas";
    /// Several puts and deletes under one revision.
    BATCH = 0x04, "batch";
    /// Conditions, and one of two lists of operations.
    TRANSACTION = 0x05, "txn";
    /// Sets or clears the deadline of a key.
    EXPIRE = 0x06, "expire";
    /// Adds to the decimal integer in a key.
    INCREMENT = 0x07, "incr";
    /// Adds to the decimal fraction in a key.
    INCREMENT_DECIMAL = 0x08, "incr_decimal";
    /// Appends bytes to a value.
    APPEND = 0x09, "append";
    /// Overwrites part of a value.
    SET_RANGE = 0x0A, "set_range";
    /// Removes a bounded number of keys of a range.
    DELETE_RANGE = 0x0B, "delete_range";
    /// Moves a value to another key.
    RENAME = 0x0C, "rename";
    /// One Redis command that is not one of the above, by its name and arguments.
    REDIS = 0x20, "redis";
    /// The commands between MULTI and EXEC and the watched revisions.
    REDIS_TRANSACTION = 0x21, "redis_txn";
    /// Commits nothing but the entry's stamp, so that an idle cluster's clock goes on.
    TICK = 0x40, "tick";
    /// Deletes a bounded number of keys whose deadline has passed.
    SWEEP = 0x41, "sweep";
    /// Makes every replica hash a range of its state as of this entry.
    HASH_AT = 0x42, "hash_at";
    /// Trims the change history below a revision.
    TRIM_HISTORY = 0x43, "trim_history";
    /// Opens a client session.
    OPEN_SESSION = 0x48, "open_session";
    /// Closes a client session.
    CLOSE_SESSION = 0x49, "close_session";
    /// Forgets the sessions that were used the longest time ago.
    EVICT_SESSIONS = 0x4A, "evict_sessions";
    /// Replaces the replicated limits.
    SET_LIMITS = 0x50, "set_limits";
    /// Raises the feature version once every node knows it.
    RAISE_FEATURES = 0x51, "raise_features";
    /// Raises the revision base above every revision of a restored backup.
    RAISE_REVISION_BASE = 0x52, "raise_revision_base";
    /// Takes the next node id for a host that will join.
    TAKE_NODE_ID = 0x53, "take_node_id";
    /// Creates, changes or removes a user.
    SET_USER = 0x54, "set_user";
    /// Sets a replicated option, such as relaxed durability.
    SET_OPTION = 0x55, "set_option";
    /// Says which data directory the sending node runs on.
    ANNOUNCE = 0x56, "announce";
}

impl CommandOpcode {
    /// Wraps a raw opcode, known or not.
    pub const fn new(number: u8) -> Self {
        Self(number)
    }

    /// The raw opcode.
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// Set in the encoded flags when client id and sequence follow the head. No command's own flag may
/// use it.
const FLAG_IDENTIFIED: u8 = 0x80;

/// Everything of a command but its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandHead {
    /// What the command does.
    pub opcode: CommandOpcode,
    /// The database (key space) that it works on.
    pub database: u8,
    /// Options of the opcode; the highest bit belongs to the codec and must be clear.
    pub flags: u8,
    /// The session of the client, or [`ClientId::NONE`].
    pub client: ClientId,
    /// The client's own number of the command within its session.
    pub sequence: u64,
}

impl CommandHead {
    /// A head without flags and session.
    pub const fn new(opcode: CommandOpcode, database: u8) -> Self {
        Self {
            opcode,
            database,
            flags: 0,
            client: ClientId::NONE,
            sequence: 0,
        }
    }

    fn is_identified(&self) -> bool {
        self.sequence != 0 || self.client != ClientId::NONE
    }

    /// Bytes of the command with a body of `body_bytes`.
    pub fn encoded_bytes(&self, body_bytes: usize) -> usize {
        let identity = if self.is_identified() {
            COMMAND_IDENTITY_BYTES
        } else {
            0
        };
        COMMAND_HEAD_BYTES_MIN + identity + body_bytes
    }

    /// Appends the head of a command whose body has `body_bytes`.
    pub fn encode_into(&self, body_bytes: usize, out: &mut BytesMut) {
        let identified = self.is_identified();
        let marker = if identified { FLAG_IDENTIFIED } else { 0 };
        let mut head = [0; COMMAND_HEAD_BYTES_MAX];
        head[0] = self.opcode.get();
        head[1] = self.database;
        head[2] = (self.flags & !FLAG_IDENTIFIED) | marker;
        head[3..7].copy_from_slice(&length_u32(body_bytes).to_be_bytes());
        if identified {
            head[7..23].copy_from_slice(&self.client.get());
            head[23..].copy_from_slice(&self.sequence.to_be_bytes());
            out.put_slice(&head);
        } else {
            out.put_slice(&head[..COMMAND_HEAD_BYTES_MIN]);
        }
    }
}

/// A command whose body is still where it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandRef<'a> {
    /// Everything but the body.
    pub head: CommandHead,
    /// The body, laid out as the opcode says.
    pub body: &'a [u8],
}

impl<'a> CommandRef<'a> {
    fn read(reader: &mut SliceReader<'a>) -> Result<Self, DecodeError> {
        let opcode = CommandOpcode::new(reader.u8()?);
        let database = reader.u8()?;
        let flags = reader.u8()?;
        let body_bytes = reader.length()?;
        let mut head = CommandHead {
            flags: flags & !FLAG_IDENTIFIED,
            ..CommandHead::new(opcode, database)
        };
        if flags & FLAG_IDENTIFIED != 0 {
            head.client = ClientId::new(reader.array()?);
            head.sequence = reader.u64()?;
            if !head.is_identified() {
                return Err(reader.malformed());
            }
        }
        if body_bytes > COMMAND_BYTES_MAX {
            return Err(reader.malformed());
        }
        Ok(Self {
            head,
            body: reader.take(body_bytes)?,
        })
    }
}

/// One command with its own body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// What the command does.
    pub opcode: CommandOpcode,
    /// The database (key space) that it works on.
    pub database: u8,
    /// Options of the opcode; the highest bit belongs to the codec and is not encoded.
    pub flags: u8,
    /// The session of the client, or [`ClientId::NONE`].
    pub client: ClientId,
    /// The client's own number of the command within its session.
    pub sequence: u64,
    /// The body, laid out as the opcode says.
    pub body: Bytes,
}

impl Command {
    /// Joins a head and a body.
    pub fn new(head: CommandHead, body: Bytes) -> Self {
        let CommandHead {
            opcode,
            database,
            flags,
            client,
            sequence,
        } = head;
        Self {
            opcode,
            database,
            flags,
            client,
            sequence,
            body,
        }
    }

    /// Everything but the body.
    pub const fn head(&self) -> CommandHead {
        CommandHead {
            opcode: self.opcode,
            database: self.database,
            flags: self.flags,
            client: self.client,
            sequence: self.sequence,
        }
    }

    /// Bytes of the encoded command.
    pub fn encoded_bytes(&self) -> usize {
        self.head().encoded_bytes(self.body.len())
    }

    /// Appends the encoded command to `out`.
    pub fn encode_into(&self, out: &mut BytesMut) {
        out.reserve(self.encoded_bytes());
        self.head().encode_into(self.body.len(), out);
        out.put_slice(&self.body);
    }

    /// Reads exactly one command; the body shares the memory of `bytes`.
    pub fn decode(bytes: &Bytes) -> Result<Self, DecodeError> {
        let mut reader = SliceReader::new(bytes, "command");
        let command = CommandRef::read(&mut reader)?;
        reader.finish()?;
        Ok(Self::new(command.head, shared(bytes, command.body)))
    }
}

/// The commands of a sub-batch, read one by one without copying.
///
/// After the first malformed command the iterator yields one error and ends.
#[derive(Clone)]
pub struct Commands<'a> {
    reader: SliceReader<'a>,
}

impl<'a> Commands<'a> {
    /// Reads concatenated commands.
    pub const fn new(encoded: &'a [u8]) -> Self {
        Self {
            reader: SliceReader::new(encoded, "command"),
        }
    }
}

impl<'a> Iterator for Commands<'a> {
    type Item = Result<CommandRef<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        let command = CommandRef::read(&mut self.reader);
        if command.is_err() {
            self.reader.take_rest();
        }
        Some(command)
    }
}
