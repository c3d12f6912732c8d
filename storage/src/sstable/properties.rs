//! What a table says about itself.
//!
//! A list of tagged fields in ascending order: an unknown field is skipped, an unknown required
//! flag refuses the table. Format page: docs/formats/sstable.md.

use bytes::Bytes;

use crate::codec::{Reader, index, long, push_varint};
use crate::file_number::FileNumber;
use crate::identity::DatabaseId;
use crate::sequence_number::SequenceNumber;

/// Features without which a reader would misread the table; version 1 has none.
const REQUIRED_FLAGS_KNOWN: u32 = 0;

const ENTRIES: u64 = 1;
const TOMBSTONES: u64 = 2;
const USER_KEYS: u64 = 3;
const RAW_KEY_BYTES: u64 = 4;
const RAW_VALUE_BYTES: u64 = 5;
const DATA_BLOCKS: u64 = 6;
const SEQUENCE_MIN: u64 = 7;
const SEQUENCE_MAX: u64 = 8;
const SMALLEST: u64 = 9;
const LARGEST: u64 = 10;
const BORN_DATABASE: u64 = 11;
const BORN_NUMBER: u64 = 12;

/// Which table a file is, for ever: the database that wrote it and the number it had there. A copy
/// in another database has another number there and the same birth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Birth {
    pub(crate) database: DatabaseId,
    pub(crate) number: FileNumber,
}

/// What a table holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Properties {
    /// Versions, tombstones included.
    pub(crate) entry_count: u64,
    pub(crate) tombstone_count: u64,
    /// Different user keys.
    pub(crate) user_key_count: u64,
    /// Lengths of the user keys of all entries, as if none were shared.
    pub(crate) raw_key_bytes: u64,
    pub(crate) raw_value_bytes: u64,
    pub(crate) data_block_count: u64,
    pub(crate) sequence_min: SequenceNumber,
    pub(crate) sequence_max: SequenceNumber,
    /// The first user key.
    pub(crate) smallest: Bytes,
    /// The last user key.
    pub(crate) largest: Bytes,
    pub(crate) birth: Birth,
}

impl Properties {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = REQUIRED_FLAGS_KNOWN.to_le_bytes().to_vec();
        let mut field = |tag, value: &[u8]| {
            push_varint(&mut out, tag);
            push_varint(&mut out, long(value.len()));
            out.extend_from_slice(value);
        };
        field(ENTRIES, &self.entry_count.to_le_bytes());
        field(TOMBSTONES, &self.tombstone_count.to_le_bytes());
        field(USER_KEYS, &self.user_key_count.to_le_bytes());
        field(RAW_KEY_BYTES, &self.raw_key_bytes.to_le_bytes());
        field(RAW_VALUE_BYTES, &self.raw_value_bytes.to_le_bytes());
        field(DATA_BLOCKS, &self.data_block_count.to_le_bytes());
        field(SEQUENCE_MIN, &self.sequence_min.get().to_le_bytes());
        field(SEQUENCE_MAX, &self.sequence_max.get().to_le_bytes());
        field(SMALLEST, &self.smallest);
        field(LARGEST, &self.largest);
        field(BORN_DATABASE, self.birth.database.as_bytes());
        field(BORN_NUMBER, &self.birth.number.get().to_le_bytes());
        out
    }

    /// # Errors
    /// What is wrong with the bytes.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, &'static str> {
        let mut fields = Fields::new(bytes)?;
        let properties = Self {
            entry_count: fields.number(ENTRIES)?,
            tombstone_count: fields.number(TOMBSTONES)?,
            user_key_count: fields.number(USER_KEYS)?,
            raw_key_bytes: fields.number(RAW_KEY_BYTES)?,
            raw_value_bytes: fields.number(RAW_VALUE_BYTES)?,
            data_block_count: fields.number(DATA_BLOCKS)?,
            sequence_min: fields.sequence(SEQUENCE_MIN)?,
            sequence_max: fields.sequence(SEQUENCE_MAX)?,
            smallest: Bytes::copy_from_slice(fields.find(SMALLEST)?),
            largest: Bytes::copy_from_slice(fields.find(LARGEST)?),
            birth: Birth {
                database: DatabaseId::from_bytes(fields.array(BORN_DATABASE)?),
                number: FileNumber::new(fields.number(BORN_NUMBER)?),
            },
        };
        fields.finish()?;
        let counts = properties.tombstone_count <= properties.entry_count
            && properties.user_key_count <= properties.entry_count
            && properties.entry_count > 0;
        let ordered = properties.smallest <= properties.largest
            && properties.sequence_min <= properties.sequence_max;
        if counts && ordered {
            Ok(properties)
        } else {
            Err("the properties contradict each other")
        }
    }
}

const DAMAGED: &str = "the properties cannot be read";

/// Walks the fields once, in ascending order of their tags.
struct Fields<'a> {
    reader: Reader<'a>,
    tag_before: u64,
}

impl<'a> Fields<'a> {
    fn new(bytes: &'a [u8]) -> Result<Self, &'static str> {
        let mut reader = Reader::new(bytes);
        let required = reader.u32().ok_or(DAMAGED)?;
        if required & !REQUIRED_FLAGS_KNOWN != 0 {
            return Err("the table needs a feature that is not known");
        }
        Ok(Self {
            reader,
            tag_before: 0,
        })
    }

    /// The next field, whatever it is.
    fn next(&mut self) -> Option<(u64, &'a [u8])> {
        let (tag, length) = (self.reader.varint()?, self.reader.varint()?);
        let ascending = tag > self.tag_before;
        self.tag_before = tag;
        let bounded = length <= long(self.reader.rest().len());
        if !ascending || !bounded {
            return None;
        }
        Some((tag, self.reader.take(index(length))?))
    }

    /// The field `wanted`; unknown ones before it are skipped.
    fn find(&mut self, wanted: u64) -> Result<&'a [u8], &'static str> {
        loop {
            match self.next() {
                Some((tag, value)) if tag == wanted => return Ok(value),
                Some((tag, _)) if tag < wanted => {}
                _ => return Err(DAMAGED),
            }
        }
    }

    fn array<const N: usize>(&mut self, wanted: u64) -> Result<[u8; N], &'static str> {
        self.find(wanted)?.try_into().map_err(|_| DAMAGED)
    }

    fn number(&mut self, wanted: u64) -> Result<u64, &'static str> {
        self.array(wanted).map(u64::from_le_bytes)
    }

    fn sequence(&mut self, wanted: u64) -> Result<SequenceNumber, &'static str> {
        let number = self.number(wanted)?;
        let possible = number <= SequenceNumber::MAX.get();
        possible.then(|| SequenceNumber::new(number)).ok_or(DAMAGED)
    }

    /// Skips what newer programs added.
    fn finish(&mut self) -> Result<(), &'static str> {
        while !self.reader.rest().is_empty() {
            self.next().ok_or(DAMAGED)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
