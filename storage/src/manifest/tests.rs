//! What survives in a manifest, what is refused, and the bytes that later versions must read.

mod codec;
mod damage;
mod golden;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use super::*;
use crate::catalog::{KeyspaceId, KeyspaceOptions};
use crate::error::OpenError;
use crate::file_number::FileNumber;
use crate::identity::DatabaseId;
use crate::sequence_number::SequenceNumber;
use crate::sstable::Birth;
use crate::table::TableMeta;
use crate::vfs::{MemFs, Vfs};

const DATABASE: DatabaseId = DatabaseId::from_bytes([7; 16]);
const NUMBER: FileNumber = FileNumber::new(3);

fn directory() -> &'static Path {
    Path::new("/data")
}

fn id(number: u32) -> KeyspaceId {
    KeyspaceId::from_encoded(number).unwrap()
}

fn table(number: u64, smallest: &[u8], largest: &[u8]) -> TableMeta {
    TableMeta {
        number: FileNumber::new(number),
        bytes: 1000 + number,
        hash: 0x0123_4567_89AB_CDEF,
        birth: Birth {
            database: DATABASE,
            number: FileNumber::new(number),
        },
        smallest: Bytes::copy_from_slice(smallest),
        largest: Bytes::copy_from_slice(largest),
        sequence_min: SequenceNumber::new(number),
        sequence_max: SequenceNumber::new(number + 1),
        entries: 5,
        tombstones: 1,
        epoch: number,
    }
}

fn add(number: u64, smallest: &[u8], largest: &[u8]) -> Record {
    Record::AddTable {
        id: id(1),
        level: 0,
        table: table(number, smallest, largest),
    }
}

/// The state with which the file of the tests begins.
fn state() -> Vec<Edit> {
    let added = Record::AddKeyspace {
        id: id(1),
        name: "state".into(),
        options: KeyspaceOptions::default(),
    };
    vec![
        vec![
            Record::NextNumber(FileNumber::new(4)),
            Record::NextKeyspace(id(2)),
        ],
        vec![added, Record::LastSequence(id(1), SequenceNumber::ZERO)],
    ]
}

/// What is appended to it: a flush, a longer one over more than a sector, a compaction.
fn edits() -> Vec<Edit> {
    let next = |number| Record::NextNumber(FileNumber::new(number));
    let last = |number| Record::LastSequence(id(1), SequenceNumber::new(number));
    let remove = |number| Record::RemoveTable {
        id: id(1),
        level: 0,
        number: FileNumber::new(number),
    };
    let merged = Record::AddTable {
        id: id(1),
        level: 6,
        table: table(6, b"apple", b"quince"),
    };
    vec![
        vec![next(5), last(10), add(4, b"apple", b"pear")],
        vec![next(6), last(20), add(5, &[b'b'; 700], b"quince")],
        vec![next(7), last(20), remove(4), remove(5), merged],
    ]
}

/// A disk with the state and the edits, and the end of each of the edits.
fn written() -> (MemFs, Vec<usize>) {
    let disk = MemFs::new();
    disk.create_dir_all(directory()).unwrap();
    let mut writer = writer(&disk);
    writer.roll(NUMBER, &state(), &[]).unwrap();
    let mut ends = vec![writer.counters().bytes()];
    for edit in edits() {
        writer.append(&edit).unwrap();
        ends.push(writer.counters().bytes());
    }
    let ends = ends.into_iter().map(|end| usize::try_from(end).unwrap());
    (disk, ends.collect())
}

fn writer(disk: &MemFs) -> ManifestWriter {
    let vfs = Arc::new(disk.clone()) as Arc<dyn Vfs>;
    ManifestWriter::new(vfs, directory().to_owned(), DATABASE, 4096)
}

/// All edits, or the error.
fn read(disk: &MemFs) -> Result<Vec<Edit>, OpenError> {
    let loaded = load(disk, directory(), DATABASE)?.expect("CURRENT is there");
    Ok(loaded.edits.into_iter().map(|(_, edit)| edit).collect())
}

fn all() -> Vec<Edit> {
    state().into_iter().chain(edits()).collect()
}

/// The file's bytes, and a disk with other ones in their place.
fn bytes_of(disk: &MemFs, name: &str) -> Vec<u8> {
    let file = disk.open(&directory().join(name)).unwrap();
    let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
    let count = crate::vfs::read_full(&*file, &mut bytes, 0).unwrap();
    assert_eq!(count, bytes.len());
    bytes
}

/// What is read once `bytes` are the manifest.
fn read_instead(disk: &MemFs, bytes: &[u8]) -> Result<Vec<Edit>, OpenError> {
    let path = directory().join(NUMBER.manifest_name());
    disk.corrupt(&path, |file| *file = bytes.to_vec()).unwrap();
    read(disk)
}
