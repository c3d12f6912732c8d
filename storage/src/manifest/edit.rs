//! One change of the state, as a list of records: each a tag, a length and a value.
//!
//! A record with an unknown tag below [`OPTIONAL_TAGS`] refuses the edit, as it changes what the
//! others mean; one above is skipped.

use std::sync::Arc;

use crate::catalog::{KeyspaceId, KeyspaceOptions};
use crate::codec::{Reader, index, push_bytes32, push_field};
use crate::file_number::FileNumber;
use crate::sequence_number::SequenceNumber;
use crate::table::TableMeta;
use crate::version::LEVELS;

use super::table_record::{decode_table, encode_table};

/// The longest name of a keyspace. Names are short words of the embedder.
pub(crate) const NAME_BYTES_MAX: usize = 1024;

/// Records from this tag on may be skipped by who does not know them.
const OPTIONAL_TAGS: u64 = 128;

const NEXT_NUMBER: u64 = 1;
const NEXT_KEYSPACE: u64 = 2;
const ADD_KEYSPACE: u64 = 3;
const DROP_KEYSPACE: u64 = 4;
const LAST_SEQUENCE: u64 = 5;
const REMOVE_TABLE: u64 = 6;
const ADD_TABLE: u64 = 7;

/// The records of one frame, in the order in which they take effect.
pub(crate) type Edit = Vec<Record>;

/// One step of an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    /// Tables and manifests below this number were made or may have been.
    NextNumber(FileNumber),
    /// Incarnations below this one were made.
    NextKeyspace(KeyspaceId),
    /// A new, empty keyspace.
    AddKeyspace {
        id: KeyspaceId,
        name: Arc<str>,
        options: KeyspaceOptions,
    },
    /// A keyspace is gone, with its tables.
    DropKeyspace(KeyspaceId),
    /// What the tables of a keyspace hold from now on.
    LastSequence(KeyspaceId, SequenceNumber),
    /// A table is not needed any more.
    RemoveTable {
        id: KeyspaceId,
        level: usize,
        number: FileNumber,
    },
    /// A table belongs to a keyspace from now on.
    AddTable {
        id: KeyspaceId,
        level: usize,
        table: TableMeta,
    },
}

/// Why bytes are not an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EditFault(pub(super) &'static str);

const DAMAGED: EditFault = EditFault("an edit cannot be read");
const UNKNOWN: EditFault = EditFault("an edit needs a feature that is not known");

/// The payload of the frame of `edit`.
pub(super) fn encode(edit: &[Record]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut value = Vec::new();
    for record in edit {
        value.clear();
        let tag = record.encode(&mut value);
        push_field(&mut out, tag, &value);
    }
    out
}

/// The edit in the payload of a frame.
pub(crate) fn decode(payload: &[u8]) -> Result<Edit, EditFault> {
    let mut reader = Reader::new(payload);
    let mut edit = Vec::new();
    while !reader.rest().is_empty() {
        let (tag, value) = reader.field().ok_or(DAMAGED)?;
        match tag {
            NEXT_NUMBER..=ADD_TABLE => {
                edit.push(Record::decode(tag, Reader::new(value)).ok_or(DAMAGED)?);
            }
            0..OPTIONAL_TAGS => return Err(UNKNOWN),
            _ => {}
        }
    }
    Ok(edit)
}

impl Record {
    /// Appends the value; answers the tag.
    fn encode(&self, out: &mut Vec<u8>) -> u64 {
        let number = |out: &mut Vec<u8>, number: u64| out.extend_from_slice(&number.to_le_bytes());
        match self {
            Self::NextNumber(next) => {
                number(out, next.get());
                NEXT_NUMBER
            }
            Self::NextKeyspace(next) => {
                push_id(out, *next);
                NEXT_KEYSPACE
            }
            Self::AddKeyspace { id, name, options } => {
                push_id(out, *id);
                push_bytes32(out, name.as_bytes());
                push_bytes32(out, &options.encode());
                ADD_KEYSPACE
            }
            Self::DropKeyspace(id) => {
                push_id(out, *id);
                DROP_KEYSPACE
            }
            Self::LastSequence(id, last) => {
                push_id(out, *id);
                number(out, last.get());
                LAST_SEQUENCE
            }
            Self::RemoveTable {
                id,
                level,
                number: removed,
            } => {
                push_place(out, *id, *level);
                number(out, removed.get());
                REMOVE_TABLE
            }
            Self::AddTable { id, level, table } => {
                push_place(out, *id, *level);
                encode_table(out, table);
                ADD_TABLE
            }
        }
    }

    fn decode(tag: u64, mut reader: Reader<'_>) -> Option<Self> {
        let record = match tag {
            NEXT_NUMBER => Self::NextNumber(FileNumber::from_encoded(reader.u64()?)?),
            NEXT_KEYSPACE => Self::NextKeyspace(take_id(&mut reader)?),
            ADD_KEYSPACE => Self::AddKeyspace {
                id: take_id(&mut reader)?,
                name: std::str::from_utf8(reader.bytes32(NAME_BYTES_MAX)?)
                    .ok()?
                    .into(),
                options: KeyspaceOptions::decode(
                    reader.bytes32(KeyspaceOptions::ENCODED_BYTES_MAX)?,
                )?,
            },
            DROP_KEYSPACE => Self::DropKeyspace(take_id(&mut reader)?),
            LAST_SEQUENCE => Self::LastSequence(
                take_id(&mut reader)?,
                SequenceNumber::from_encoded(reader.u64()?)?,
            ),
            REMOVE_TABLE => Self::RemoveTable {
                id: take_id(&mut reader)?,
                level: take_level(&mut reader)?,
                number: FileNumber::from_encoded(reader.u64()?)?,
            },
            ADD_TABLE => Self::AddTable {
                id: take_id(&mut reader)?,
                level: take_level(&mut reader)?,
                table: decode_table(&mut reader)?,
            },
            _ => return None,
        };
        reader.rest().is_empty().then_some(record)
    }
}

fn push_id(out: &mut Vec<u8>, id: KeyspaceId) {
    out.extend_from_slice(&id.get().to_le_bytes());
}

fn push_place(out: &mut Vec<u8>, id: KeyspaceId, level: usize) {
    push_id(out, id);
    out.push(u8::try_from(level).expect("levels are few"));
}

fn take_id(reader: &mut Reader<'_>) -> Option<KeyspaceId> {
    KeyspaceId::from_encoded(reader.u32()?)
}

fn take_level(reader: &mut Reader<'_>) -> Option<usize> {
    let level = index(u64::from(reader.u8()?));
    (level < LEVELS).then_some(level)
}
