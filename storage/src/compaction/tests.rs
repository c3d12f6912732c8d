//! Compaction, from pure plans to whole databases.

mod crash;
mod database;
mod drop_rule;
mod job;
mod merging;
mod picking;
mod shapes;
mod stage;
mod threads;

use std::sync::Arc;

use bytes::Bytes;

use super::shape::{Described, Shape};
use super::*;
use crate::file_number::FileNumber;
use crate::identity::DatabaseId;
use crate::sequence_number::SequenceNumber;
use crate::sstable::Birth;
use crate::table::TableMeta;
use crate::version::LEVELS;

impl Described for TableMeta {
    fn meta(&self) -> &TableMeta {
        self
    }
}

/// Table sets without files.
type Plan = [Vec<Arc<TableMeta>>; LEVELS];

fn levels(plan: &Plan) -> Shape<'_, TableMeta> {
    Shape::new(plan.each_ref().map(Vec::as_slice))
}

/// A table that goes from one key to another.
fn table(number: u64, smallest: &str, largest: &str, bytes: u64) -> TableMeta {
    let birth = Birth {
        database: DatabaseId::from_bytes([7; 16]),
        number: FileNumber::new(number),
    };
    TableMeta {
        number: FileNumber::new(number),
        bytes,
        hash: 0,
        birth,
        smallest: Bytes::copy_from_slice(smallest.as_bytes()),
        largest: Bytes::copy_from_slice(largest.as_bytes()),
        sequence_min: SequenceNumber::new(number),
        sequence_max: SequenceNumber::new(number),
        entries: 10,
        tombstones: 0,
        epoch: number,
    }
}

fn options() -> CompactionOptions {
    CompactionOptions {
        table_bytes: 10,
        level_base_bytes: 100,
        l0_trigger: 4,
        l0_stop: 20,
    }
}
