//! What a shipped state consists of, as bytes that travel before its files.
//!
//! Format page: docs/formats/description.md.

use std::collections::BTreeSet;

use crate::catalog::KeyspaceOptions;
use crate::codec::{Reader, index, long, push_bytes32, short};
use crate::manifest::{decode_table, encode_table};
use crate::sequence_number::SequenceNumber;
use crate::sstable::TABLE_BYTES_MIN;
use crate::table::TableMeta;
use crate::version::{LEVELS, Version, check_levels};

/// The longest description that is taken: 65,536 files with keys of a hundred bytes.
pub(crate) const DESCRIPTION_BYTES_MAX: usize = 16 << 20;
/// The most files: two terabytes in tables of the usual length.
pub(crate) const FILES_MAX: usize = 65_536;

/// Whoever takes a state over goes on counting from its numbers, so half of each range must be
/// left; no real state comes near.
const LAST_SEQUENCE_MAX: u64 = 1 << 55;
const EPOCH_MAX: u64 = 1 << 61;

const MAGIC: u32 = u32::from_le_bytes(*b"KDSC");
const VERSION: u16 = 1;

/// A set of tables under the names of the database that described it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Description {
    pub(crate) options: KeyspaceOptions,
    pub(crate) last_sequence: SequenceNumber,
    /// Tables with their levels, in the order in which a version lists them.
    pub(crate) tables: Vec<(usize, TableMeta)>,
}

impl Description {
    /// Describes `version`.
    pub(super) fn of(version: &Version) -> Self {
        let tables = version.tables();
        let tables = tables.map(|(level, table)| (level, table.meta().clone()));
        Self {
            options: version.options(),
            last_sequence: version.last_sequence(),
            tables: tables.collect(),
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_le_bytes().to_vec();
        out.extend_from_slice(&VERSION.to_le_bytes());
        push_bytes32(&mut out, &self.options.encode());
        out.extend_from_slice(&self.last_sequence.get().to_le_bytes());
        out.extend_from_slice(&short(self.tables.len()).to_le_bytes());
        for (level, table) in &self.tables {
            out.push(u8::try_from(*level).expect("levels are few"));
            encode_table(&mut out, table);
        }
        let check = crc32fast::hash(&out);
        out.extend_from_slice(&check.to_le_bytes());
        out
    }

    /// # Errors
    /// What is wrong with the bytes.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, &'static str> {
        let (content, check) = bytes.split_last_chunk().ok_or("it is cut off")?;
        if crc32fast::hash(content) != u32::from_le_bytes(*check) {
            return Err("it does not match its check");
        }
        let mut reader = Reader::new(content);
        if reader.u32() != Some(MAGIC) {
            return Err("it is something else");
        }
        if reader.u16() != Some(VERSION) {
            return Err("it has a version that is not known");
        }
        let description = Self::decode_fields(&mut reader).ok_or("it cannot be read")?;
        if !reader.rest().is_empty() {
            return Err("something follows it");
        }
        description.check()?;
        Ok(description)
    }

    fn decode_fields(reader: &mut Reader<'_>) -> Option<Self> {
        let options = reader.bytes32(KeyspaceOptions::ENCODED_BYTES_MAX)?;
        let options = KeyspaceOptions::decode(options)?;
        let last_sequence = SequenceNumber::from_encoded(reader.u64()?)?;
        let count = index(u64::from(reader.u32()?));
        if count > FILES_MAX {
            return None;
        }
        let mut tables = Vec::new();
        for _ in 0..count {
            let level = usize::from(reader.u8()?);
            let table = decode_table(reader)?;
            if level >= LEVELS {
                return None;
            }
            tables.push((level, table));
        }
        Some(Self {
            options,
            last_sequence,
            tables,
        })
    }

    /// Whether it could be a version.
    fn check(&self) -> Result<(), &'static str> {
        if self.last_sequence.get() > LAST_SEQUENCE_MAX {
            return Err("the sequence numbers are nearly used up");
        }
        let mut births = BTreeSet::new();
        for (_, table) in &self.tables {
            let birth = (table.birth.database.as_bytes(), table.birth.number);
            if !births.insert(birth) {
                return Err("a table comes twice");
            }
            if table.bytes < long(TABLE_BYTES_MIN) {
                return Err("a table is too short");
            }
            if table.sequence_max > self.last_sequence {
                return Err("a table is newer than the state");
            }
            if table.epoch > EPOCH_MAX {
                return Err("the epochs are nearly used up");
            }
        }
        let mut sizes = self.tables.iter().map(|(_, table)| table.bytes);
        let sum = sizes.try_fold(0_u64, u64::checked_add);
        if sum.is_none() {
            return Err("the tables are too long");
        }
        let tables = self.tables.iter().map(|(level, table)| (*level, table));
        check_levels(tables).map_err(|fault| fault.0)
    }
}

#[cfg(test)]
mod tests;
