//! The bytes of a write-ahead log file: header, frames, record headers.
//!
//! Pure encoding and decoding; format page: docs/formats/wal.md. Every checksum is salted with the
//! database, the file and the place in it, so that bytes from elsewhere never pass for these.

use crc32fast::Hasher;

use crate::codec::{Reader, index, long, short};
use crate::file_number::FileNumber;
use crate::identity::DatabaseId;
use crate::salt::Salt;

/// The file header; the first frame follows it.
pub(crate) const FILE_HEADER_BYTES: usize = 64;
/// The header of a frame; frames start at multiples of [`ALIGNMENT`].
pub(crate) const FRAME_HEADER_BYTES: usize = 40;
/// The header of a record in a frame's body.
pub(crate) const RECORD_HEADER_BYTES: usize = 8;
/// Frames and records start at multiples of this, so that frames can be found again by scanning.
pub(crate) const ALIGNMENT: usize = 8;
/// A frame takes records up to this; a larger record is alone in its frame. Large enough that 40
/// bytes of header do not show, small enough that one damaged frame does not cost much.
pub(crate) const FRAME_BODY_BYTES_TARGET: usize = 1 << 20;
/// The largest body, and so the largest allocation that a file on the disk can ask for.
pub(crate) const FRAME_BODY_BYTES_MAX: usize = 16 << 20;
/// The largest record payload.
pub(crate) const RECORD_BYTES_MAX: usize = FRAME_BODY_BYTES_MAX - RECORD_HEADER_BYTES;
/// Beyond any count of records, and far enough from the end of the range that adding to it is safe.
const RECORD_SEQUENCE_MAX: u64 = 1 << 62;
/// The newest version of the format.
pub(crate) const VERSION: u16 = 1;

const FILE_MAGIC: u32 = u32::from_le_bytes(*b"KWAL");
const FRAME_MAGIC: u32 = u32::from_le_bytes(*b"KFRM");
const FLAG_PREDECESSOR_DURABLE: u8 = 1;

const _: () = assert!(FILE_HEADER_BYTES.is_multiple_of(ALIGNMENT));
const _: () = assert!(FRAME_HEADER_BYTES.is_multiple_of(ALIGNMENT));
const _: () = assert!(RECORD_HEADER_BYTES.is_multiple_of(ALIGNMENT));

/// Rounds a length up to the alignment.
pub(crate) const fn padded(length: usize) -> usize {
    length.next_multiple_of(ALIGNMENT)
}

/// The file before a file, as the file knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Predecessor {
    pub(crate) number: FileNumber,
    /// Its length up to the end of its seal.
    pub(crate) length: u64,
    /// The sequence of its last record; 0 when there was never any.
    pub(crate) last_sequence: u64,
}

/// The start of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileHeader {
    pub(crate) number: FileNumber,
    pub(crate) database: DatabaseId,
    /// None in the first file of a database.
    pub(crate) predecessor: Option<Predecessor>,
}

/// Why bytes are not a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderFault {
    Damaged,
    Newer(u16),
}

impl FileHeader {
    pub(crate) fn encode(&self) -> [u8; FILE_HEADER_BYTES] {
        let none = Predecessor {
            number: FileNumber::new(0),
            length: 0,
            last_sequence: 0,
        };
        let predecessor = self.predecessor.unwrap_or(none);
        let mut bytes = [0; FILE_HEADER_BYTES];
        bytes[0..4].copy_from_slice(&FILE_MAGIC.to_le_bytes());
        bytes[4..6].copy_from_slice(&VERSION.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.number.get().to_le_bytes());
        bytes[16..32].copy_from_slice(self.database.as_bytes());
        bytes[32..40].copy_from_slice(&predecessor.number.get().to_le_bytes());
        bytes[40..48].copy_from_slice(&predecessor.length.to_le_bytes());
        bytes[48..56].copy_from_slice(&predecessor.last_sequence.to_le_bytes());
        let check = crc32fast::hash(&bytes[..60]);
        bytes[60..].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; FILE_HEADER_BYTES]) -> Result<Self, HeaderFault> {
        let (content, check) = bytes.split_last_chunk().ok_or(HeaderFault::Damaged)?;
        let mut reader = Reader::new(content);
        let intact = crc32fast::hash(content) == u32::from_le_bytes(*check);
        if reader.u32() != Some(FILE_MAGIC) || !intact {
            return Err(HeaderFault::Damaged);
        }
        let version = reader.u16().ok_or(HeaderFault::Damaged)?;
        if version > VERSION {
            return Err(HeaderFault::Newer(version));
        }
        Self::decode_fields(reader).ok_or(HeaderFault::Damaged)
    }

    fn decode_fields(mut reader: Reader<'_>) -> Option<Self> {
        let _flags = reader.u16()?;
        let number = FileNumber::new(reader.u64()?);
        let database = DatabaseId::from_bytes(reader.array()?);
        let before = FileNumber::new(reader.u64()?);
        let (length, last_sequence) = (reader.u64()?, reader.u64()?);
        if last_sequence > RECORD_SEQUENCE_MAX {
            return None;
        }
        let predecessor = (before.get() != 0).then_some(Predecessor {
            number: before,
            length,
            last_sequence,
        });
        Some(Self {
            number,
            database,
            predecessor,
        })
    }
}

/// What a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// It holds records, or only bears witness of a sync.
    Data,
    /// Nothing follows it in its file.
    Seal,
}

/// The start of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) kind: FrameKind,
    pub(crate) body_bytes: u32,
    pub(crate) record_count: u32,
    /// The sequence of the first record, or of the next one when there is none.
    pub(crate) first_sequence: u64,
    /// Every byte of the file below this offset was durable when the frame was written.
    pub(crate) synced_upto: u64,
    /// The whole file before this one was durable when the frame was written.
    pub(crate) predecessor_durable: bool,
}

impl FrameHeader {
    pub(crate) fn encode(&self, salt: Salt, offset: u64) -> [u8; FRAME_HEADER_BYTES] {
        let mut bytes = [0; FRAME_HEADER_BYTES];
        bytes[0..4].copy_from_slice(&FRAME_MAGIC.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.body_bytes.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.record_count.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.first_sequence.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.synced_upto.to_le_bytes());
        bytes[32] = match self.kind {
            FrameKind::Data => 1,
            FrameKind::Seal => 2,
        };
        bytes[33] = if self.predecessor_durable {
            FLAG_PREDECESSOR_DURABLE
        } else {
            0
        };
        let check = salt.apply(crc32fast::hash(&bytes[8..]), offset);
        bytes[4..8].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// The header in the first bytes of `bytes`, when they are one at this place of this file.
    pub(crate) fn decode(bytes: &[u8], salt: Salt, offset: u64) -> Option<Self> {
        let mut reader = Reader::new(bytes.get(..FRAME_HEADER_BYTES)?);
        if reader.u32()? != FRAME_MAGIC {
            return None;
        }
        let check = reader.u32()?;
        if check != salt.apply(crc32fast::hash(reader.rest()), offset) {
            return None;
        }
        let (body_bytes, record_count) = (reader.u32()?, reader.u32()?);
        let (first_sequence, synced_upto) = (reader.u64()?, reader.u64()?);
        let kind = match reader.u8()? {
            1 => FrameKind::Data,
            2 => FrameKind::Seal,
            _ => return None,
        };
        let predecessor_durable = reader.u8()? & FLAG_PREDECESSOR_DURABLE != 0;
        Some(Self {
            kind,
            body_bytes,
            record_count,
            first_sequence,
            synced_upto,
            predecessor_durable,
        })
    }

    /// Whether `bytes` start like a frame; cheap enough to ask at every place of a file.
    pub(crate) fn looks_like(bytes: &[u8]) -> bool {
        bytes.starts_with(&FRAME_MAGIC.to_le_bytes())
    }
}

/// Appends a record: header, payload in two parts, padding. `check` is the checksum of the payload
/// and `offset` the place in the file where the record comes to lie.
pub(crate) fn push_record(
    out: &mut Vec<u8>,
    parts: [&[u8]; 2],
    check: u32,
    salt: Salt,
    offset: u64,
) {
    let length = parts[0].len() + parts[1].len();
    out.extend_from_slice(&short(length).to_le_bytes());
    out.extend_from_slice(&salt.apply(check, offset).to_le_bytes());
    out.extend_from_slice(parts[0]);
    out.extend_from_slice(parts[1]);
    out.resize(out.len() + padded(length) - length, 0);
}

/// The checksum of a payload in two parts.
pub(crate) fn record_check(parts: [&[u8]; 2]) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(parts[0]);
    hasher.update(parts[1]);
    hasher.finalize()
}

/// A record found in a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawRecord<'a> {
    /// Where it starts, header included, from the start of the body.
    pub(crate) position: usize,
    pub(crate) payload: &'a [u8],
}

/// Takes the record at `position` of `body`, which starts at `body_offset` of the file. None when
/// its length or checksum does not hold.
pub(crate) fn record_at(
    body: &[u8],
    position: usize,
    salt: Salt,
    body_offset: u64,
) -> Option<RawRecord<'_>> {
    let mut reader = Reader::new(body.get(position..)?);
    let (length, check) = (reader.u32()?, reader.u32()?);
    let payload = reader.take(index(u64::from(length)))?;
    let expected = salt.apply(crc32fast::hash(payload), body_offset + long(position));
    (check == expected).then_some(RawRecord { position, payload })
}

#[cfg(test)]
mod tests;
