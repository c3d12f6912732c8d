//! Doors for fuzzers: each feeds bytes to one decoder of a durable format, which must not panic
//! nor ask for memory out of proportion. Not part of the promised interface.

use std::path::Path;

use crate::hard_state::HardState;
use crate::identity::{DatabaseId, Identity};
use crate::log::ReplayLogs;
use crate::vfs::{MemFs, Vfs};
use crate::wal::record::Record;
use crate::wal::recover;

/// The database whose files the bytes pretend to be.
const DATABASE: DatabaseId = DatabaseId::from_bytes([7; 16]);

/// Decodes one record of the write-ahead log.
pub fn wal_record(bytes: &[u8]) {
    let _ = Record::decode(bytes);
}

/// Recovers a write-ahead log of one file.
pub fn wal_file(bytes: &[u8]) {
    let (disk, directory) = disk_with("000001.wal", bytes);
    let mut logs = ReplayLogs::default();
    let recovered = recover::read(&disk, directory, DATABASE, None, &mut logs);
    if let Ok(mut recovery) = recovered {
        let _ = recovery.repair(&disk);
    }
}

/// Loads HARDSTATE.
pub fn hard_state(bytes: &[u8]) {
    let (disk, directory) = disk_with(crate::hard_state::FILE_NAME, bytes);
    let _ = HardState::load(&disk, directory, DATABASE);
}

/// Decodes IDENTITY.
pub fn identity(bytes: &[u8]) {
    let _ = Identity::decode(bytes);
}

fn disk_with(name: &str, bytes: &[u8]) -> (MemFs, &'static Path) {
    let (disk, directory) = (MemFs::new(), Path::new("/data"));
    disk.create_dir_all(directory)
        .expect("a disk in memory takes a directory");
    let file = disk
        .create(&directory.join(name))
        .expect("the disk is empty");
    file.write_at(bytes, 0)
        .expect("a disk in memory takes all bytes");
    (disk, directory)
}
