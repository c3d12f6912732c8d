//! Directories of version 1: what is written today is byte for byte what was written then, and
//! what was written then opens for ever.

use super::corruption::{content, wal_paths};
use super::stage::{Snapshot, Stage, directory, entry, must, position};
use super::*;
use crate::golden;
use crate::log::LogIndex;
use crate::vfs::MemFs;

const FILES: [&str; 4] = ["IDENTITY", "HARDSTATE", "000001.wal", "000002.wal"];

/// Writes every kind of record, a witness, a rotation and a clean end.
fn write() -> (MemFs, Snapshot) {
    let disk = MemFs::new();
    let stage = Stage::new(Arc::new(disk.clone()));
    let database = stage.open().unwrap();
    database.raise_boot().unwrap();
    database.bind(b"owner of the golden directory").unwrap();
    let log = database.log(LogNumber::new(5)).unwrap();
    for index in 0..8 {
        let payload = vec![b'a' + u8::try_from(index).unwrap(); 180];
        log.append(vec![entry(index, payload)], must()).unwrap();
        stage.executor.run_until_idle();
    }
    stage.idle();
    log.put_vote(b"golden vote", must()).unwrap();
    log.truncate_suffix(LogIndex::new(6)).unwrap();
    log.append(vec![entry(6, vec![b'z'; 300])], must()).unwrap();
    log.put_committed(position(5)).unwrap();
    stage.executor.run_until_idle();
    log.discard_prefix(position(1)).unwrap();
    log.append(vec![entry(7, "eight"), entry(8, "")], must())
        .unwrap();
    stage.executor.run_until_idle();
    let expected = Snapshot::of(&log);
    database.close();
    (disk, expected)
}

#[test]
fn the_bytes_of_version_1_are_written() {
    let (disk, _) = write();
    let wal: Vec<_> = wal_paths(&disk);
    assert_eq!(wal, [FILES[2], FILES[3]].map(|name| directory().join(name)));
    for name in FILES {
        golden::check(name, &content(&disk, &directory().join(name)));
    }
}

#[test]
fn a_directory_of_version_1_opens() {
    let (_, expected) = write();
    let disk = MemFs::new();
    disk.create_dir_all(directory()).unwrap();
    for name in FILES {
        let file = disk.create(&directory().join(name)).unwrap();
        file.write_at(&golden::load(name), 0).unwrap();
    }
    let database = Stage::new(Arc::new(disk)).open().unwrap();
    assert_eq!(database.boot().get(), 1);
    assert_eq!(database.owner().unwrap(), "owner of the golden directory");
    let log = database.log(LogNumber::new(5)).unwrap();
    assert_eq!(Snapshot::of(&log), expected);
    assert_eq!(log.vote().unwrap(), "golden vote");
}
