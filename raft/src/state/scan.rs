//! Ordered reads of one database.

use std::ops::Bound;

use bytes::Bytes;
use kelp_storage::{Direction, RangeIterator};

use super::StateError;
use super::key::{RECORD, record_key};
use super::record::Record;
use super::view::StateView;
use crate::model::DecodeError;

/// Which records to read, and in which order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanRange {
    /// The database; other databases are never seen.
    pub database: u8,
    /// The lower bound of user keys.
    pub start: Bound<Bytes>,
    /// The upper bound of user keys. A range whose bounds cross is empty.
    pub end: Bound<Bytes>,
    /// From the end to the start.
    pub reverse: bool,
}

impl ScanRange {
    /// All keys of `database`, in order.
    pub const fn all(database: u8) -> Self {
        Self {
            database,
            start: Bound::Unbounded,
            end: Bound::Unbounded,
            reverse: false,
        }
    }

    /// The range as the engine has it.
    pub(crate) fn into_engine_bounds(self) -> (Bound<Bytes>, Bound<Bytes>) {
        let database = self.database;
        let start = match self.start {
            Bound::Unbounded => Bound::Included(record_key(database, &[])),
            bound => bound.map(|key| record_key(database, &key)),
        };
        let end = match self.end {
            Bound::Unbounded => Bound::Excluded(match database.checked_add(1) {
                Some(next) => record_key(next, &[]),
                None => Bytes::from_static(&[RECORD + 1]),
            }),
            bound => bound.map(|key| record_key(database, &key)),
        };
        (start, end)
    }

    /// Whether the bounds cross, or meet in a key that one of them excludes.
    fn is_empty(&self) -> bool {
        match (&self.start, &self.end) {
            (Bound::Included(start), Bound::Included(end)) => start > end,
            (Bound::Included(start) | Bound::Excluded(start), Bound::Excluded(end))
            | (Bound::Excluded(start), Bound::Included(end)) => start >= end,
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        }
    }
}

/// An iterator over the live records of a range, each with its user key.
///
/// It reads ahead a little, may touch the disk, and ends after the first error.
pub struct Scan {
    view: StateView,
    /// `None` when there is nothing more to read.
    entries: Option<RangeIterator>,
}

impl Scan {
    pub(super) fn new(view: StateView, range: ScanRange) -> Self {
        let direction = if range.reverse {
            Direction::Reverse
        } else {
            Direction::Forward
        };
        let entries =
            (!range.is_empty()).then(|| view.engine().range(range.into_engine_bounds(), direction));
        Self { view, entries }
    }

    /// Splits an entry of the engine into user key and record; `None` when the record is dead.
    fn read(&self, key: &Bytes, value: &Bytes) -> Result<Option<(Bytes, Record)>, StateError> {
        let record = Record::decode(value).map_err(|source| StateError::corrupt(key, source))?;
        if key.len() < 2 {
            return Err(StateError::corrupt(
                key,
                DecodeError::malformed("record key"),
            ));
        }
        Ok(self
            .view
            .is_live(&record)?
            .then(|| (key.slice(2..), record)))
    }
}

impl Iterator for Scan {
    type Item = Result<(Bytes, Record), StateError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let read = match self.entries.as_mut()?.next() {
                None => Ok(None),
                Some(Err(error)) => Err(error.into()),
                Some(Ok((key, value))) => match self.read(&key, &value) {
                    Ok(None) => continue,
                    found => found,
                },
            };
            if !matches!(read, Ok(Some(_))) {
                self.entries = None;
            }
            return read.transpose();
        }
    }
}

/// How much a page may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLimits {
    /// Most records.
    pub count_max: usize,
    /// Most bytes of user keys and values; the first record is returned even if it is larger.
    pub bytes_max: usize,
}

/// One piece of a scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The records in the order of the scan.
    pub records: Vec<(Bytes, Record)>,
    /// The user key of the record after them: where the next page begins, inclusive.
    pub next: Option<Bytes>,
}

impl Page {
    pub(super) fn collect(scan: Scan, limits: PageLimits) -> Result<Self, StateError> {
        let mut page = Self {
            records: Vec::new(),
            next: None,
        };
        let mut bytes = 0_usize;
        for found in scan {
            let (key, record) = found?;
            bytes = bytes
                .saturating_add(key.len())
                .saturating_add(record.value.len());
            let fits = page.records.len() < limits.count_max && bytes <= limits.bytes_max;
            if !fits && !(page.records.is_empty()) {
                page.next = Some(key);
                break;
            }
            page.records.push((key, record));
        }
        Ok(page)
    }
}
