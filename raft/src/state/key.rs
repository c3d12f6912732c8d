//! The keys of the `state` keyspace.
//!
//! The first byte tells the kind; numbers are big endian so that the engine's order is their order.
//! Two kinds are written and read by the hot path through functions of their own; the whole table
//! is [`StateKey`], for tools and tests.

use bytes::{BufMut, Bytes, BytesMut};

use crate::model::{
    BatchNumber, Boot, ClientId, DecodeError, NodeId, Revision, SliceReader, StampMillis,
    SubBatchId,
};

const META: u8 = 0x00;
/// The number behind [`META`] of the records that there are one of per node.
const META_NODE_DIRECTORY: u8 = 9;
/// The prefix of users' records; the database follows.
pub(super) const RECORD: u8 = 0x01;
const EXPIRY: u8 = 0x02;
const EXECUTED: u8 = 0x03;
const EXECUTED_SUB_BATCHES: u8 = 0x01;
const EXECUTED_SESSIONS: u8 = 0x02;
const HISTORY: u8 = 0x04;
const ELEMENT: u8 = 0x05;

/// The single records of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum MetaKey {
    /// The last applied entry and the replicated clock.
    Applied = 1,
    /// The chain hash after the last applied entry.
    Chain = 2,
    /// The last applied membership and where it stands in the log.
    Membership = 3,
    /// The identity of the cluster.
    ClusterId = 4,
    /// The id that the next node gets.
    NextNodeId = 5,
    /// The limits of keys and values.
    Limits = 6,
    /// What is added to every revision.
    RevisionBase = 7,
    /// The formats and commands that all nodes know.
    FeatureVersion = 8,
}

impl MetaKey {
    const ALL: [Self; 8] = [
        Self::Applied,
        Self::Chain,
        Self::Membership,
        Self::ClusterId,
        Self::NextNodeId,
        Self::Limits,
        Self::RevisionBase,
        Self::FeatureVersion,
    ];

    /// The encoded key.
    pub const fn encode(self) -> [u8; 2] {
        [META, self as u8]
    }

    /// The encoded key as the engine takes it.
    pub(crate) fn to_bytes(self) -> Bytes {
        Bytes::copy_from_slice(&self.encode())
    }
}

/// One key of the `state` keyspace.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StateKey {
    /// A single record of the group.
    Meta(MetaKey),
    /// The data directory that a node announced first.
    NodeDirectory {
        /// The node.
        node: NodeId,
    },
    /// A user's key.
    Record {
        /// The database.
        database: u8,
        /// The user's key.
        key: Bytes,
    },
    /// A deadline that a record had when it was written; the record decides.
    Expiry {
        /// The deadline.
        at: StampMillis,
        /// The database.
        database: u8,
        /// The user's key.
        key: Bytes,
    },
    /// The newest boot of a node and its last executed sub-batch.
    NodeProgress {
        /// The node.
        node: NodeId,
    },
    /// The replies of an executed sub-batch.
    SubBatchResult(SubBatchId),
    /// A client session.
    Session {
        /// The session.
        client: ClientId,
    },
    /// The reply to one command of a session.
    SessionReply {
        /// The session.
        client: ClientId,
        /// The client's number of the command.
        sequence: u64,
    },
    /// One change, for watchers.
    History {
        /// When it happened.
        revision: Revision,
    },
    /// An element of a Redis collection; its inner layout comes with the collections.
    Element {
        /// Everything behind the prefix.
        rest: Bytes,
    },
}

impl StateKey {
    /// The encoded key.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(32);
        match self {
            Self::Meta(key) => out.put_slice(&key.encode()),
            Self::NodeDirectory { node } => {
                out.put_slice(&[META, META_NODE_DIRECTORY]);
                out.put_u16(node.get());
            }
            Self::Record { database, key } => put_record_key(*database, key, &mut out),
            Self::Expiry { at, database, key } => {
                out.put_u8(EXPIRY);
                out.put_u64(at.get());
                out.put_u8(*database);
                out.put_slice(key);
            }
            Self::NodeProgress { node } => put_node(*node, &mut out),
            Self::SubBatchResult(id) => {
                put_node(id.node, &mut out);
                out.put_u64(id.boot.get());
                out.put_u64(id.batch.get());
            }
            Self::Session { client } => put_session(*client, &mut out),
            Self::SessionReply { client, sequence } => {
                put_session(*client, &mut out);
                out.put_u64(*sequence);
            }
            Self::History { revision } => {
                out.put_u8(HISTORY);
                out.put_u64(revision.get());
            }
            Self::Element { rest } => {
                out.put_u8(ELEMENT);
                out.put_slice(rest);
            }
        }
        out.freeze()
    }

    /// Reads a key of the engine.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = SliceReader::new(bytes, "state key");
        let key = match reader.u8()? {
            META => match reader.u8()? {
                META_NODE_DIRECTORY => Self::NodeDirectory {
                    node: NodeId::new(reader.u16()?),
                },
                number => {
                    let key = MetaKey::ALL.into_iter().find(|key| *key as u8 == number);
                    Self::Meta(key.ok_or(reader.malformed())?)
                }
            },
            RECORD => Self::Record {
                database: reader.u8()?,
                key: rest_of(&mut reader),
            },
            EXPIRY => Self::Expiry {
                at: StampMillis::new(reader.u64()?),
                database: reader.u8()?,
                key: rest_of(&mut reader),
            },
            EXECUTED => match reader.u8()? {
                EXECUTED_SUB_BATCHES => decode_sub_batch(&mut reader)?,
                EXECUTED_SESSIONS => decode_session(&mut reader)?,
                _ => return Err(reader.malformed()),
            },
            HISTORY => Self::History {
                revision: Revision::new(reader.u64()?),
            },
            ELEMENT => Self::Element {
                rest: rest_of(&mut reader),
            },
            _ => return Err(reader.malformed()),
        };
        reader.finish()?;
        Ok(key)
    }
}

/// Appends the engine's key of a user's key.
pub(crate) fn put_record_key(database: u8, key: &[u8], out: &mut BytesMut) {
    out.put_slice(&[RECORD, database]);
    out.put_slice(key);
}

/// The engine's key of a user's key.
pub(crate) fn record_key(database: u8, key: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(2 + key.len());
    put_record_key(database, key, &mut out);
    out.freeze()
}

fn put_node(node: NodeId, out: &mut BytesMut) {
    out.put_slice(&[EXECUTED, EXECUTED_SUB_BATCHES]);
    out.put_u16(node.get());
}

fn put_session(client: ClientId, out: &mut BytesMut) {
    out.put_slice(&[EXECUTED, EXECUTED_SESSIONS]);
    out.put_slice(&client.get());
}

fn rest_of(reader: &mut SliceReader<'_>) -> Bytes {
    Bytes::copy_from_slice(reader.take_rest())
}

fn decode_sub_batch(reader: &mut SliceReader<'_>) -> Result<StateKey, DecodeError> {
    let node = NodeId::new(reader.u16()?);
    if reader.is_empty() {
        return Ok(StateKey::NodeProgress { node });
    }
    let boot = Boot::new(reader.u64()?);
    let batch = BatchNumber::new(reader.u64()?);
    Ok(StateKey::SubBatchResult(SubBatchId { node, boot, batch }))
}

fn decode_session(reader: &mut SliceReader<'_>) -> Result<StateKey, DecodeError> {
    let client = ClientId::new(reader.array()?);
    if reader.is_empty() {
        return Ok(StateKey::Session { client });
    }
    Ok(StateKey::SessionReply {
        client,
        sequence: reader.u64()?,
    })
}
