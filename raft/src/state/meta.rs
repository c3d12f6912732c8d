//! The single records of a group: what is applied, when it is, who belongs to it.
//!
//! Each begins with a version. Applied position and clock stand in one record that an entry writes
//! first; the chain hash covers the entry's answers and is written last. So a view taken in the
//! middle of an entry already tells that entry's index and time, and the hash says for itself which
//! entry it belongs to.

use bytes::{BufMut, Bytes, BytesMut};
use kelp_storage::{DatabaseId, EntryTerm, LogPosition};

use crate::model::{
    ChainHash, DecodeError, KEY_BYTES_MAX, LogIndex, Revision, SliceReader, StampMillis,
    VALUE_BYTES_MAX,
};

const VERSION: u8 = 1;

fn start(bytes: usize) -> BytesMut {
    let mut out = BytesMut::with_capacity(1 + bytes);
    out.put_u8(VERSION);
    out
}

fn check_version(reader: &mut SliceReader<'_>, what: &'static str) -> Result<(), DecodeError> {
    let version = reader.u8()?;
    if version == VERSION {
        Ok(())
    } else {
        Err(DecodeError::Version { what, version })
    }
}

fn put_position(position: LogPosition, out: &mut BytesMut) {
    out.put_u64(position.index.get());
    out.put_u64(position.term.term);
    out.put_u64(position.term.leader);
}

fn read_position(reader: &mut SliceReader<'_>) -> Result<LogPosition, DecodeError> {
    let index = LogIndex::new(reader.u64()?);
    let term = EntryTerm {
        term: reader.u64()?,
        leader: reader.u64()?,
    };
    Ok(LogPosition { index, term })
}

/// The last applied entry and the replicated clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppliedRecord {
    /// The last applied entry.
    pub position: LogPosition,
    /// The largest stamp so far.
    pub clock: StampMillis,
}

impl AppliedRecord {
    /// The encoded record.
    pub fn encode(&self) -> Bytes {
        let mut out = start(32);
        put_position(self.position, &mut out);
        out.put_u64(self.clock.get());
        out.freeze()
    }

    /// Reads a record.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = SliceReader::new(bytes, "applied record");
        check_version(&mut reader, "applied record")?;
        let position = read_position(&mut reader)?;
        let clock = StampMillis::new(reader.u64()?);
        reader.finish()?;
        Ok(Self { position, clock })
    }
}

/// The chain hash after an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainRecord {
    /// The entry.
    pub index: LogIndex,
    /// The hash over everything up to it.
    pub hash: ChainHash,
}

impl ChainRecord {
    /// The encoded record.
    pub fn encode(&self) -> Bytes {
        let mut out = start(24);
        out.put_u64(self.index.get());
        out.put_u128(self.hash.get());
        out.freeze()
    }

    /// Reads a record.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = SliceReader::new(bytes, "chain record");
        check_version(&mut reader, "chain record")?;
        let index = LogIndex::new(reader.u64()?);
        let hash = ChainHash::new(reader.u128()?);
        reader.finish()?;
        Ok(Self { index, hash })
    }
}

/// The last applied membership and where it stands in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MembershipRecord {
    /// The entry that brought it.
    pub position: LogPosition,
    /// The entry's payload, in the format of the log.
    pub payload: Bytes,
}

impl MembershipRecord {
    /// The encoded record.
    pub fn encode(&self) -> Bytes {
        let mut out = start(24 + self.payload.len());
        put_position(self.position, &mut out);
        out.put_slice(&self.payload);
        out.freeze()
    }

    /// Reads a record; the payload shares the memory of `bytes`.
    pub fn decode(bytes: &Bytes) -> Result<Self, DecodeError> {
        let mut reader = SliceReader::new(bytes, "membership record");
        check_version(&mut reader, "membership record")?;
        let position = read_position(&mut reader)?;
        let payload = reader.take_rest();
        if payload.is_empty() {
            return Err(DecodeError::malformed("membership record"));
        }
        Ok(Self {
            position,
            payload: bytes.slice_ref(payload),
        })
    }
}

/// The replicated limits of keys and values; the format's own maxima until the cluster sets others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest user key.
    pub key_bytes_max: u32,
    /// Longest value.
    pub value_bytes_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        let [key_bytes_max, value_bytes_max] = [KEY_BYTES_MAX, VALUE_BYTES_MAX]
            .map(|limit| u32::try_from(limit).expect("the formats' maxima are below 4 GiB"));
        Self {
            key_bytes_max,
            value_bytes_max,
        }
    }
}

impl Limits {
    /// The encoded record.
    pub fn encode(&self) -> Bytes {
        let mut out = start(8);
        out.put_u32(self.key_bytes_max);
        out.put_u32(self.value_bytes_max);
        out.freeze()
    }

    /// Reads a record.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = SliceReader::new(bytes, "limits record");
        check_version(&mut reader, "limits record")?;
        let limits = Self {
            key_bytes_max: reader.u32()?,
            value_bytes_max: reader.u32()?,
        };
        reader.finish()?;
        Ok(limits)
    }
}

/// The record of the data directory that a node announced first.
pub(crate) fn encode_directory(directory: DatabaseId) -> Bytes {
    let mut out = start(16);
    out.put_slice(directory.as_bytes());
    out.freeze()
}

/// Reads what [`encode_directory`] wrote.
pub(crate) fn decode_directory(bytes: &[u8]) -> Result<DatabaseId, DecodeError> {
    let mut reader = SliceReader::new(bytes, "node directory");
    check_version(&mut reader, "node directory")?;
    let directory = DatabaseId::from_bytes(reader.array()?);
    reader.finish()?;
    Ok(directory)
}

/// The record of what is added to every revision. A restore writes it; there is none yet.
#[cfg(test)]
pub(crate) fn encode_revision_base(base: Revision) -> Bytes {
    let mut out = start(8);
    out.put_u64(base.get());
    out.freeze()
}

/// Reads what [`encode_revision_base`] wrote.
pub(crate) fn decode_revision_base(bytes: &[u8]) -> Result<Revision, DecodeError> {
    let mut reader = SliceReader::new(bytes, "revision base");
    check_version(&mut reader, "revision base")?;
    let base = Revision::new(reader.u64()?);
    reader.finish()?;
    Ok(base)
}
