//! The drop rule: which versions of a merge stay, and as what.
//!
//! Views pin the tables that they read, so a table keeps one version per user key: the newest. A
//! tombstone stays as long as an older table outside the merge may hold its key, since it hides
//! what is there. Where none may, the tombstone goes, and a value loses its sequence number, which
//! nothing is compared with any more.

use std::cmp::Ordering;
use std::sync::Arc;

use super::pick::Compaction;
use super::shape::{Described, Shape};
use crate::internal_key::{Kind, Trailer};
use crate::sequence_number::SequenceNumber;
use crate::version::LEVELS;

/// What becomes of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Drop,
    /// It is written with this trailer.
    Keep(Trailer),
}

/// A version that comes before the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OutOfOrder;

/// Decides over the versions of a merge, which come in order.
pub(super) struct Retention<T> {
    older: OlderTables<T>,
    last_key: Option<Vec<u8>>,
}

impl<T: Described> Retention<T> {
    pub(super) fn new(older: OlderTables<T>) -> Self {
        Self {
            older,
            last_key: None,
        }
    }

    /// What becomes of the next version.
    pub(super) fn fate(&mut self, user_key: &[u8], trailer: Trailer) -> Result<Fate, OutOfOrder> {
        match &mut self.last_key {
            Some(last) => match user_key.cmp(last.as_slice()) {
                Ordering::Less => return Err(OutOfOrder),
                Ordering::Equal => return Ok(Fate::Drop),
                Ordering::Greater => {
                    last.clear();
                    last.extend_from_slice(user_key);
                }
            },
            none => *none = Some(user_key.to_vec()),
        }
        if self.older.may_hold(user_key) {
            return Ok(Fate::Keep(trailer));
        }
        Ok(match trailer.kind() {
            Kind::Delete => Fate::Drop,
            Kind::Put => Fate::Keep(Trailer::new(SequenceNumber::ZERO, Kind::Put)),
        })
    }
}

/// The tables outside a compaction that may hold older versions of its keys.
pub(super) struct OlderTables<T> {
    /// By key, with the first one that ends at or after the last key that was asked for.
    levels: Vec<(Vec<Arc<T>>, usize)>,
    /// Those of L0.
    loose: Vec<Arc<T>>,
}

impl<T: Described> OlderTables<T> {
    pub(super) fn new(levels: &Shape<'_, T>, compaction: &Compaction<T>) -> Self {
        let is_input = |table: &Arc<T>| {
            let number = table.meta().number;
            compaction
                .inputs()
                .any(|(_, input)| input.meta().number == number)
        };
        let newest_input = match compaction.upper_level {
            0 => compaction
                .upper
                .iter()
                .map(|table| table.meta().epoch)
                .max(),
            _ => None,
        };
        // What lies above the inputs is newer; what lies between them and the output is older.
        let loose = levels.level(0).iter().filter(|table| {
            newest_input.is_some_and(|newest| table.meta().epoch < newest) && !is_input(table)
        });
        let deeper = (compaction.upper_level.max(1)..LEVELS).map(|level| {
            let tables = levels.level(level).iter();
            let tables = tables.filter(|table| !is_input(table)).cloned().collect();
            (tables, 0)
        });
        Self {
            levels: deeper.collect(),
            loose: loose.cloned().collect(),
        }
    }

    /// Whether one of them may hold `key`; asked for ascending keys.
    fn may_hold(&mut self, key: &[u8]) -> bool {
        let mut held = self.loose.iter().any(|table| {
            let meta = table.meta();
            *meta.smallest <= *key && *key <= *meta.largest
        });
        for (tables, at) in &mut self.levels {
            while tables
                .get(*at)
                .is_some_and(|table| *table.meta().largest < *key)
            {
                *at += 1;
            }
            held |= tables
                .get(*at)
                .is_some_and(|table| *table.meta().smallest <= *key);
        }
        held
    }
}
