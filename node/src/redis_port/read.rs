//! Serving the commands that read, from a view of the state.

use std::ops::Bound;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use kelp_raft::{CachedRecord, Record, ScanRange, StateError, StateView};
use kelp_wire::{RespEncoder, RespVersion, Status, key_after_prefix};

use super::cursors::{Cursors, Position};
use super::glob::Glob;

/// Bytes of values that one reply may hold: a few of the largest values. More would have to be held
/// in memory for one client.
const REPLY_BYTES_MAX: usize = 32 << 20;

/// Bytes of keys that one page of a scan looks at, whatever COUNT says.
const PAGE_BYTES_MAX: usize = 1 << 20;

/// Keys of a page that is served on the connection's task.
const QUICK_PAGE_KEYS: usize = 100;

/// Keys that are counted one by one; beyond, the number is an estimate.
pub(super) const SIZE_EXACT_MAX: usize = 1_000_000;

/// What a record takes in the engine beside key and value, about.
const RECORD_OVERHEAD_BYTES: usize = 40;

/// A read and what it needs to know of its connection.
pub(super) struct ReadJob {
    pub(super) database: u8,
    pub(super) version: RespVersion,
    pub(super) read: Read,
}

/// What a read asks for.
pub(super) enum Read {
    Get {
        key: Bytes,
    },
    GetAll {
        keys: Vec<Bytes>,
    },
    CountExisting {
        keys: Vec<Bytes>,
    },
    Length {
        key: Bytes,
    },
    Type {
        key: Bytes,
    },
    /// The number of keys; `storage_bytes` is what the engine holds in all.
    Size {
        storage_bytes: usize,
    },
    Scan(ScanJob),
}

/// One page of a scan.
pub(super) struct ScanJob {
    pub(super) cursors: Arc<Cursors>,
    /// The last key of the page before.
    pub(super) after: Option<Bytes>,
    pub(super) pattern: Option<Glob>,
    pub(super) count: usize,
    /// False when only other types than strings are asked for, of which there are none.
    pub(super) strings: bool,
}

/// Where a read may look.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Only into memory: it is served on the connection's task.
    Memory,
    /// Everywhere: blocking harms nobody.
    Disk,
}

impl ReadJob {
    /// Appends the reply to `out`; none, and nothing appended, when it needs more than `access`.
    ///
    /// # Errors
    /// The storage engine failed; nothing was appended.
    pub(super) fn serve(
        &self,
        view: &StateView,
        access: Access,
        out: &mut BytesMut,
    ) -> Result<Option<Status>, StateError> {
        let mut encoder = RespEncoder::new(out, self.version);
        match &self.read {
            Read::Scan(job) => return job.serve(self.database, view, access, &mut encoder),
            Read::Size { storage_bytes } => {
                // Counting takes long even in memory.
                if access == Access::Memory {
                    return Ok(None);
                }
                let size = size(view, self.database, SIZE_EXACT_MAX, *storage_bytes)?;
                encoder.count(size.keys);
                return Ok(Some(Status::Ok));
            }
            _ => {}
        }
        let Some(records) = self.records(view, access)? else {
            return Ok(None);
        };
        let record = records.first().and_then(Option::as_ref);
        match &self.read {
            Read::Get { .. } => match record {
                Some(record) => encoder.bulk(&record.value),
                None => encoder.null(),
            },
            Read::GetAll { keys } => return Ok(Some(all(&records, keys.len(), &mut encoder))),
            Read::CountExisting { .. } => {
                encoder.count(records.iter().filter(|record| record.is_some()).count());
            }
            Read::Length { .. } => encoder.count(record.map_or(0, |record| record.value.len())),
            Read::Type { .. } => encoder.simple(record.map_or("none", |_| "string")),
            Read::Size { .. } | Read::Scan(_) => {}
        }
        Ok(Some(Status::Ok))
    }

    /// The records of all keys, or the first of them when all are too much for one reply; none when
    /// one of them needs more than `access`. Values come only where the reply has them.
    fn records(
        &self,
        view: &StateView,
        access: Access,
    ) -> Result<Option<Vec<Option<Record>>>, StateError> {
        let keys = match &self.read {
            Read::Get { key } | Read::Length { key } | Read::Type { key } => {
                std::slice::from_ref(key)
            }
            Read::GetAll { keys } | Read::CountExisting { keys } => keys,
            Read::Size { .. } | Read::Scan(_) => &[],
        };
        let mut records = Vec::with_capacity(keys.len());
        let mut bytes = 0;
        for key in keys {
            let found = match access {
                Access::Memory => view.get_cached(self.database, key)?,
                Access::Disk => CachedRecord::Hit(view.get(self.database, key)?),
            };
            let CachedRecord::Hit(mut record) = found else {
                return Ok(None);
            };
            if let Some(record) = &mut record {
                match &self.read {
                    Read::GetAll { .. } => bytes += record.value.len(),
                    Read::CountExisting { .. } => record.value = Bytes::new(),
                    _ => {}
                }
            }
            if bytes > REPLY_BYTES_MAX {
                break;
            }
            records.push(record);
        }
        Ok(Some(records))
    }
}

fn all(records: &[Option<Record>], count: usize, encoder: &mut RespEncoder<'_>) -> Status {
    if records.len() < count {
        encoder.error(&format!(
            "ERR the values are over {REPLY_BYTES_MAX} bytes, the most for one reply; \
             ask for fewer keys"
        ));
        return Status::TooLarge;
    }
    encoder.array(records.len());
    for record in records {
        match record {
            Some(record) => encoder.bulk(&record.value),
            None => encoder.null(),
        }
    }
    Status::Ok
}

impl ScanJob {
    fn serve(
        &self,
        database: u8,
        view: &StateView,
        access: Access,
        encoder: &mut RespEncoder<'_>,
    ) -> Result<Option<Status>, StateError> {
        // Many keys take long even in memory.
        let is_short = self.count <= QUICK_PAGE_KEYS && view.is_in_memory();
        if access == Access::Memory && !is_short {
            return Ok(None);
        }
        let mut keys = Vec::new();
        let (mut count, mut bytes) = (0, 0);
        let mut last = None;
        let mut cursor = 0;
        if self.strings {
            for found in view.scan(self.range(database)) {
                let (key, _) = found?;
                if (count >= self.count || bytes >= PAGE_BYTES_MAX)
                    && let Some(key) = last.take()
                {
                    cursor = self.cursors.keep(Position { database, key }).number();
                    break;
                }
                count += 1;
                bytes += key.len();
                if self.pattern.as_ref().is_none_or(|glob| glob.matches(&key)) {
                    keys.push(key.clone());
                }
                last = Some(key);
            }
        }
        encoder.array(2);
        encoder.bulk(cursor.to_string().as_bytes());
        encoder.array(keys.len());
        for key in &keys {
            encoder.bulk(key);
        }
        Ok(Some(Status::Ok))
    }

    fn range(&self, database: u8) -> ScanRange {
        let prefix = self.pattern.as_ref().map_or(&[][..], Glob::prefix);
        let mut range = ScanRange::all(database);
        if !prefix.is_empty() {
            range.start = Bound::Included(Bytes::copy_from_slice(prefix));
            range.end = key_after_prefix(prefix).map_or(Bound::Unbounded, Bound::Excluded);
        }
        if let Some(after) = self.after.as_ref().filter(|after| after[..] >= *prefix) {
            range.start = Bound::Excluded(after.clone());
        }
        range
    }
}

/// How many keys a database has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) keys: usize,
    pub(super) exact: bool,
}

/// Counts up to `exact_max` keys; beyond, it takes the rest of what the engine holds for records of
/// the same size.
pub(super) fn size(
    view: &StateView,
    database: u8,
    exact_max: usize,
    storage_bytes: usize,
) -> Result<Size, StateError> {
    let (mut keys, mut bytes) = (0_usize, 0_usize);
    for found in view.scan(ScanRange::all(database)) {
        let (key, record) = found?;
        if keys == exact_max {
            let per_key = (bytes / keys.max(1)).max(1);
            return Ok(Size {
                keys: keys.max(storage_bytes / per_key),
                exact: false,
            });
        }
        keys += 1;
        bytes += key.len() + record.value.len() + RECORD_OVERHEAD_BYTES;
    }
    Ok(Size { keys, exact: true })
}
