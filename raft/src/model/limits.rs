//! The sizes that every replica agrees on because the formats are built around them.
//!
//! The key and value limits are defaults: a limits record in the replicated state replaces them, so
//! that apply never asks local configuration.

/// Longest user key: fits the `u16` of the command body, and the engine's 128 KiB with every key
/// prefix around it.
pub const KEY_BYTES_MAX: usize = 32 << 10;

/// Longest value: one command stays below [`COMMAND_BYTES_MAX`] with its longest key.
pub const VALUE_BYTES_MAX: usize = 8 << 20;

/// Longest encoded command. It leaves room beside the longest value for a key, a head and an
/// expected value's digest.
pub const COMMAND_BYTES_MAX: usize = 9 << 20;

/// Size at which a batch of commands stops growing: large enough that one fsync is shared by
/// thousands of commands, small enough that an entry is sent and applied within a few milliseconds.
pub const ENTRY_BYTES_TARGET: usize = 1 << 20;

/// Most commands in one entry: the position of a command is the low 16 bits of its revision.
pub const ENTRY_COMMANDS_MAX: usize = 1 << 16;

/// Most keys that one command removes from a range. A command of an entry that is applied must not
/// hold up those behind it; removing so many takes a few milliseconds.
pub(crate) const DELETE_RANGE_KEYS_MAX: usize = 10_000;

/// Bytes of keys after which a command stops removing a range: as much as an entry usually writes.
pub(crate) const DELETE_RANGE_BYTES_MAX: usize = 1 << 20;

/// What the commands of one entry may do beyond what their own bytes ask for: bytes of values that
/// are copied to append to them, keys that are looked at to remove a range. Without it a few bytes
/// of log could make every replica write without end. It lets eight of the longest values be
/// appended to.
pub(crate) const ENTRY_WORK_MAX: usize = 64 << 20;

/// Longest encoded entry: the one command that is alone in it, and the heads around it.
pub const ENTRY_BYTES_MAX: usize = COMMAND_BYTES_MAX + (64 << 10);

/// Longest head of an encoded command: opcode, database, flags, body length, client id and
/// sequence.
pub const COMMAND_HEAD_BYTES_MAX: usize = COMMAND_HEAD_BYTES_MIN + COMMAND_IDENTITY_BYTES;

/// Head of a command that carries no client identity.
pub(crate) const COMMAND_HEAD_BYTES_MIN: usize = 7;

/// Client id and sequence.
pub(crate) const COMMAND_IDENTITY_BYTES: usize = 24;

const _: () = assert!(
    KEY_BYTES_MAX + VALUE_BYTES_MAX + COMMAND_HEAD_BYTES_MAX + 2 <= COMMAND_BYTES_MAX,
    "the largest put is a legal command"
);
const _: () = assert!(KEY_BYTES_MAX <= u16::MAX as usize, "a key length is a u16");
const _: () = assert!(
    ENTRY_BYTES_MAX <= 15 << 20,
    "an entry fits a write-ahead-log frame of 16 MiB"
);
