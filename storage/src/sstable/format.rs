//! The frame of an sstable: how blocks lie in the file, and the footer that leads to them.
//!
//! Pure encoding and decoding; format page: docs/formats/sstable.md. What is in a block is not
//! known here.

use crate::codec::{Reader, index, long, push_varint, short};
use crate::salt::Salt;

/// The newest version of the format.
pub(super) const VERSION: u16 = 1;

/// The footer, the last bytes of every file.
pub(crate) const FOOTER_BYTES: usize = 64;

/// What follows the payload of a block: how it is compressed, and a check.
pub(super) const BLOCK_TRAILER_BYTES: usize = 1 + 4;

/// The longest block, before and after compression: one value of the largest batch with its key
/// and room for the rest, and so the largest allocation that a file on the disk can ask for.
pub(super) const BLOCK_BYTES_MAX: usize = (1 << 30) + (1 << 20);

const MAGIC: u64 = u64::from_le_bytes(*b"KELPSST\n");
const FOOTER_CHECKED_BYTES: usize = 52;
const CHECK_CRC32: u8 = 1;
const FLAG_TWO_LEVEL_INDEX: u8 = 1;

const RAW: u8 = 0;
const LZ4: u8 = 1;
/// The uncompressed length in front of compressed bytes.
const LZ4_LENGTH_BYTES: usize = 4;
/// No LZ4 stream grows by more than this factor.
const LZ4_GROWTH_MAX: usize = 255;

/// How blocks are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    /// Not at all.
    None,
    /// With LZ4, where that saves at least an eighth.
    Lz4,
}

/// Where a block is: `length` bytes of payload from `offset` on, and then the trailer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Handle {
    pub(super) offset: u64,
    pub(super) length: u32,
}

impl Handle {
    /// The first byte after the block, trailer included.
    pub(super) fn end(self) -> Option<u64> {
        let bytes = u64::from(self.length) + long(BLOCK_TRAILER_BYTES);
        self.offset.checked_add(bytes)
    }

    /// The length of the block with its trailer.
    pub(super) fn stored_bytes(self) -> usize {
        index(u64::from(self.length)) + BLOCK_TRAILER_BYTES
    }

    /// As the value of an index entry.
    pub(super) fn encode(self, out: &mut Vec<u8>) {
        push_varint(out, self.offset);
        push_varint(out, u64::from(self.length));
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let handle = Self {
            offset: reader.varint()?,
            length: reader.varint()?.try_into().ok()?,
        };
        let bounded = index(u64::from(handle.length)) <= BLOCK_BYTES_MAX;
        (bounded && reader.rest().is_empty()).then_some(handle)
    }
}

/// Appends `payload` as a block of the file whose bytes so far end at `offset`; answers where it
/// is.
pub(super) fn append_block(
    out: &mut Vec<u8>,
    payload: &[u8],
    offset: u64,
    salt: Salt,
    compression: Compression,
) -> Handle {
    let start = out.len();
    let kind = match compression {
        Compression::Lz4 if append_compressed(out, payload) => LZ4,
        _ => {
            out.extend_from_slice(payload);
            RAW
        }
    };
    let length = short(out.len() - start);
    out.push(kind);
    let check = salt.apply(crc32fast::hash(&out[start..]), offset);
    out.extend_from_slice(&check.to_le_bytes());
    Handle { offset, length }
}

/// Appends `payload` compressed, or nothing when that does not save an eighth.
fn append_compressed(out: &mut Vec<u8>, payload: &[u8]) -> bool {
    let start = out.len();
    let bound = lz4_flex::block::get_maximum_output_size(payload.len());
    out.resize(start + LZ4_LENGTH_BYTES + bound, 0);
    let (length, compressed) = out[start..].split_at_mut(LZ4_LENGTH_BYTES);
    length.copy_from_slice(&short(payload.len()).to_le_bytes());
    let written = lz4_flex::block::compress_into(payload, compressed).unwrap_or(bound);
    let length = LZ4_LENGTH_BYTES + written;
    let worth_it = length <= payload.len() - payload.len() / 8;
    out.truncate(if worth_it { start + length } else { start });
    worth_it
}

/// The payload of the block that `stored` is, trailer included, at `offset` of its file.
pub(super) fn open_block(
    mut stored: Vec<u8>,
    offset: u64,
    salt: Salt,
) -> Result<Vec<u8>, &'static str> {
    let (checked, check) = stored.split_last_chunk().ok_or("a block is cut off")?;
    if salt.apply(crc32fast::hash(checked), offset) != u32::from_le_bytes(*check) {
        return Err("a block does not match its check");
    }
    let (&kind, payload) = checked.split_last().ok_or("a block is cut off")?;
    match kind {
        RAW => {
            stored.truncate(payload.len());
            Ok(stored)
        }
        LZ4 => decompress(payload).ok_or("a block cannot be decompressed"),
        _ => Err("a block is compressed in an unknown way"),
    }
}

fn decompress(payload: &[u8]) -> Option<Vec<u8>> {
    let (length, compressed) = payload.split_first_chunk()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    if length > BLOCK_BYTES_MAX || length / LZ4_GROWTH_MAX > compressed.len() {
        return None;
    }
    let mut plain = vec![0; length];
    let written = lz4_flex::block::decompress_into(compressed, &mut plain).ok()?;
    (written == length).then_some(plain)
}

/// The end of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Footer {
    pub(super) properties: Handle,
    pub(super) index: Handle,
    /// None when the table has no filter.
    pub(super) filter: Option<Handle>,
    pub(super) salt: Salt,
    /// Whether the index leads to partitions of the index instead of data blocks.
    pub(super) two_level_index: bool,
}

/// Why bytes are not a footer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FooterFault {
    Damaged(&'static str),
    Newer(u16),
}

impl Footer {
    pub(super) fn encode(&self) -> [u8; FOOTER_BYTES] {
        let nothing = Handle {
            offset: 0,
            length: 0,
        };
        let flags = if self.two_level_index {
            FLAG_TWO_LEVEL_INDEX
        } else {
            0
        };
        let mut bytes = [0; FOOTER_BYTES];
        let handles = [self.properties, self.index, self.filter.unwrap_or(nothing)];
        for (handle, field) in handles.into_iter().zip(bytes.chunks_exact_mut(12)) {
            field[..8].copy_from_slice(&handle.offset.to_le_bytes());
            field[8..].copy_from_slice(&handle.length.to_le_bytes());
        }
        bytes[36..40].copy_from_slice(&self.salt.get().to_le_bytes());
        bytes[40..42].copy_from_slice(&VERSION.to_le_bytes());
        bytes[42] = CHECK_CRC32;
        bytes[43] = flags;
        let check = crc32fast::hash(&bytes[..FOOTER_CHECKED_BYTES]);
        bytes[52..56].copy_from_slice(&check.to_le_bytes());
        bytes[56..].copy_from_slice(&MAGIC.to_le_bytes());
        bytes
    }

    /// The footer of a file of `file_bytes`; its blocks are known to lie before it, in order.
    pub(super) fn decode(bytes: &[u8; FOOTER_BYTES], file_bytes: u64) -> Result<Self, FooterFault> {
        let damaged = FooterFault::Damaged;
        let (content, tail) = bytes.split_at(FOOTER_CHECKED_BYTES);
        let mut tail = Reader::new(tail);
        let (check, magic) = (tail.u32(), tail.u64());
        if magic != Some(MAGIC) {
            return Err(damaged("the file does not end like an sstable"));
        }
        if check != Some(crc32fast::hash(content)) {
            return Err(damaged("the footer does not match its check"));
        }
        let (footer, version, check_kind, flags) =
            Self::decode_fields(Reader::new(content)).ok_or(damaged("the footer is cut off"))?;
        if version > VERSION {
            return Err(FooterFault::Newer(version));
        }
        if check_kind != CHECK_CRC32 || flags & !FLAG_TWO_LEVEL_INDEX != 0 {
            return Err(damaged("the footer has unknown flags"));
        }
        if !footer.is_in_order(file_bytes) {
            return Err(damaged("the footer names blocks outside of the file"));
        }
        Ok(footer)
    }

    fn decode_fields(mut reader: Reader<'_>) -> Option<(Self, u16, u8, u8)> {
        let mut handle = || {
            Some(Handle {
                offset: reader.u64()?,
                length: reader.u32()?,
            })
        };
        let (properties, index, filter) = (handle()?, handle()?, handle()?);
        let salt = Salt::from_number(reader.u32()?);
        let (version, check_kind, flags) = (reader.u16()?, reader.u8()?, reader.u8()?);
        let footer = Self {
            properties,
            index,
            filter: (filter.length > 0).then_some(filter),
            salt,
            two_level_index: flags & FLAG_TWO_LEVEL_INDEX != 0,
        };
        Some((footer, version, check_kind, flags))
    }

    /// Filter, index, properties, footer; each ends where the next one starts, but partitions of
    /// the index may lie between filter and index.
    fn is_in_order(&self, file_bytes: u64) -> bool {
        let blocks = [Some(self.properties), Some(self.index), self.filter];
        let bounded = |handle: Handle| index(u64::from(handle.length)) <= BLOCK_BYTES_MAX;
        let filter_end = self.filter.map_or(Some(0), Handle::end);
        blocks.into_iter().flatten().all(bounded)
            && filter_end.is_some_and(|end| end <= self.index.offset)
            && self.index.end() == Some(self.properties.offset)
            && self.properties.end() == file_bytes.checked_sub(long(FOOTER_BYTES))
    }

    /// The end of everything that the index may lead to.
    pub(super) fn index_leads_below(&self) -> u64 {
        self.index.offset
    }
}

#[cfg(test)]
mod tests;
