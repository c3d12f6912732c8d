//! A table as the manifest and the description of a shipped state hold it.

use bytes::Bytes;

use crate::codec::{Reader, push_bytes32};
use crate::file_number::FileNumber;
use crate::identity::DatabaseId;
use crate::keyspace::KEY_BYTES_MAX;
use crate::sequence_number::SequenceNumber;
use crate::sstable::Birth;
use crate::table::TableMeta;

/// Appends `table`.
pub(crate) fn encode_table(out: &mut Vec<u8>, table: &TableMeta) {
    let mut number = |number: u64| out.extend_from_slice(&number.to_le_bytes());
    number(table.number.get());
    number(table.bytes);
    number(table.hash);
    number(table.birth.number.get());
    number(table.sequence_min.get());
    number(table.sequence_max.get());
    number(table.entries);
    number(table.tombstones);
    number(table.epoch);
    out.extend_from_slice(table.birth.database.as_bytes());
    push_bytes32(out, &table.smallest);
    push_bytes32(out, &table.largest);
}

/// Takes a table off the front of `reader`; none when it is cut off or contradicts itself.
pub(crate) fn decode_table(reader: &mut Reader<'_>) -> Option<TableMeta> {
    let (number, bytes, hash) = (reader.u64()?, reader.u64()?, reader.u64()?);
    let born_number = reader.u64()?;
    let (sequence_min, sequence_max) = (reader.u64()?, reader.u64()?);
    let (entries, tombstones, epoch) = (reader.u64()?, reader.u64()?, reader.u64()?);
    let born_database = DatabaseId::from_bytes(reader.array()?);
    let smallest = reader.bytes32(KEY_BYTES_MAX)?;
    let largest = reader.bytes32(KEY_BYTES_MAX)?;
    let ordered = smallest <= largest && sequence_min <= sequence_max;
    let counted = entries > 0 && tombstones <= entries && epoch < EPOCH_MAX;
    if !ordered || !counted {
        return None;
    }
    Some(TableMeta {
        number: FileNumber::from_encoded(number)?,
        bytes,
        hash,
        birth: Birth {
            database: born_database,
            number: FileNumber::from_encoded(born_number)?,
        },
        smallest: Bytes::copy_from_slice(smallest),
        largest: Bytes::copy_from_slice(largest),
        sequence_min: SequenceNumber::from_encoded(sequence_min)?,
        sequence_max: SequenceNumber::from_encoded(sequence_max)?,
        entries,
        tombstones,
        epoch,
    })
}

/// Beyond any count of flushes, and far enough from the end of the range that adding to it is safe.
const EPOCH_MAX: u64 = 1 << 62;
