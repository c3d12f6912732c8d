//! Whole tables, on disks in memory.

mod cache;
mod corruption;
mod fault;
mod golden;
mod limits;
mod model;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::*;
use crate::file_number::FileNumber;
use crate::identity::DatabaseId;
use crate::internal_key::Trailer;
use crate::metrics::StorageMetrics;
use crate::vfs::{MemFs, Vfs};

/// User key, sequence number, and a value or none for a tombstone.
type Version = (Vec<u8>, u64, Option<Vec<u8>>);

fn directory() -> &'static Path {
    Path::new("/data")
}

fn birth(number: u64) -> Birth {
    Birth {
        database: DatabaseId::from_bytes([7; 16]),
        number: FileNumber::new(number),
    }
}

fn path(number: u64) -> PathBuf {
    directory().join(FileNumber::new(number).sstable_name())
}

fn disk() -> MemFs {
    let disk = MemFs::new();
    disk.create_dir_all(directory()).unwrap();
    disk
}

/// Writes `versions`, which are in order.
fn write(
    vfs: &dyn Vfs,
    number: u64,
    options: SstableOptions,
    versions: &[Version],
) -> Result<SstableSummary, SstableError> {
    let mut writer = SstableWriter::create(vfs, directory(), birth(number), options)?;
    for (key, sequence, value) in versions {
        let kind = if value.is_some() {
            Kind::Put
        } else {
            Kind::Delete
        };
        let trailer = Trailer::new(SequenceNumber::new(*sequence), kind);
        writer.add(key, trailer, value.as_deref().unwrap_or_default())?;
    }
    writer.finish()
}

fn open(vfs: &dyn Vfs, summary: &SstableSummary) -> Result<Arc<SstableReader>, SstableError> {
    let cache = Arc::new(BlockCache::new(64 << 20));
    SstableReader::open(vfs, directory(), summary.into(), cache).map(Arc::new)
}

/// Every version that the table gives, forward; at most `count_max`.
fn all(reader: &Arc<SstableReader>, count_max: usize) -> Result<Vec<Version>, SstableError> {
    let mut cursor = EntryCursor::once(Arc::clone(reader));
    let mut versions = Vec::new();
    cursor.seek_first()?;
    while let Some(version) = current(&cursor) {
        versions.push(version);
        assert!(
            versions.len() <= count_max,
            "more versions than were written"
        );
        cursor.next()?;
    }
    Ok(versions)
}

fn current(cursor: &EntryCursor) -> Option<Version> {
    let (key, trailer) = cursor.entry()?;
    let value = cursor.value()?.to_vec();
    let value = match trailer.kind() {
        Kind::Put => Some(value),
        Kind::Delete => None,
    };
    Some((key.to_vec(), trailer.sequence().get(), value))
}

/// A small table of several blocks: versions, tombstones, empty keys and values.
fn small() -> Vec<Version> {
    let mut versions = vec![(Vec::new(), 9, Some(b"the empty key".to_vec()))];
    for number in 0..30_u8 {
        let key = [b"key ".as_slice(), &[number]].concat();
        if number % 3 == 0 {
            versions.push((key.clone(), 200 + u64::from(number), None));
        }
        let value = vec![number; usize::from(number % 4) * 12];
        versions.push((key, 100 + u64::from(number), Some(value)));
    }
    versions
}

/// Blocks of a few entries.
fn small_options() -> SstableOptions {
    SstableOptions {
        block_bytes_target: 200,
        ..SstableOptions::default()
    }
}
