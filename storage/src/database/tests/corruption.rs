//! Damage to files at rest: found and named, or without effect, but never less than was promised.

use super::stage::{Snapshot, Stage, directory, entry, must, position};
use super::*;
use crate::error::Corruption;
use crate::file_number::FileNumber;
use crate::hard_state::FILE_NAME as HARD_STATE;
use crate::identity::FILE_NAME as IDENTITY;
use crate::vfs::{MemFs, read_full};
use crate::wal::record::StoredVote;

fn state(stage: &Stage) -> Result<Snapshot, OpenError> {
    let database = stage.open()?;
    let log = database.log(LogNumber::new(3)).unwrap();
    Ok(Snapshot::of(&log))
}

pub(super) fn copy(disk: &MemFs) -> MemFs {
    let copy = MemFs::new();
    copy.create_dir_all(directory()).unwrap();
    for name in disk.list(directory()).unwrap() {
        let path = directory().join(name);
        let file = copy.create(&path).unwrap();
        file.write_at(&content(disk, &path), 0).unwrap();
    }
    copy
}

pub(super) fn content(disk: &MemFs, path: &Path) -> Vec<u8> {
    let file = disk.open(path).unwrap();
    let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
    read_full(&*file, &mut bytes, 0).unwrap();
    bytes
}

/// The files of the log that have been written to, oldest first.
pub(super) fn wal_paths(disk: &MemFs) -> Vec<PathBuf> {
    let names = disk.list(directory()).unwrap();
    let wal = names
        .into_iter()
        .filter(|name| FileNumber::from_wal_name(name).is_some());
    let paths = wal.map(|name| directory().join(name));
    paths
        .filter(|path| content(disk, path).iter().any(|byte| *byte != 0))
        .collect()
}

fn newest_wal(disk: &MemFs) -> PathBuf {
    wal_paths(disk).pop().unwrap()
}

/// A database with three files of log, cleanly closed.
pub(super) fn closed() -> (MemFs, Snapshot) {
    let (disk, expected, stage, database) = opened();
    database.close();
    drop((database, stage));
    (disk, expected)
}

fn opened() -> (MemFs, Snapshot, Stage, Database) {
    let disk = MemFs::new();
    let stage = Stage::new(Arc::new(disk.clone()));
    let database = stage.open().unwrap();
    database.raise_boot().unwrap();
    let log = database.log(LogNumber::new(3)).unwrap();
    for index in 0..9 {
        let payload = vec![u8::try_from(index).unwrap(); 500];
        log.append(vec![entry(index, payload)], must()).unwrap();
        if index == 4 {
            log.put_vote(b"for somebody", must()).unwrap();
        }
        stage.executor.run_until_idle();
    }
    log.put_committed(position(7)).unwrap();
    log.append(vec![entry(9, "last")], must()).unwrap();
    stage.executor.run_until_idle();
    let expected = Snapshot::of(&log);
    (disk, expected, stage, database)
}

fn corruption(error: OpenError) -> Corruption {
    match error {
        OpenError::Corruption(corruption) => corruption,
        other => panic!("expected a corruption, got {other:?}"),
    }
}

#[test]
fn a_flipped_bit_in_a_closed_log_is_found_or_has_no_effect() {
    let (disk, expected) = closed();
    let (mut found, mut harmless) = (0, 0);
    for path in wal_paths(&disk) {
        for position in (0..content(&disk, &path).len()).step_by(5) {
            let damaged = copy(&disk);
            damaged
                .corrupt(&path, |bytes| bytes[position] ^= 1 << (position % 8))
                .unwrap();
            match state(&Stage::new(Arc::new(damaged))) {
                Ok(state) => {
                    assert_eq!(state, expected, "{} at {position}", path.display());
                    harmless += 1;
                }
                Err(
                    OpenError::ForeignFile { path: named }
                    | OpenError::NewerFormat { path: named, .. },
                ) => {
                    assert_eq!(named, path);
                    found += 1;
                }
                Err(error) => {
                    assert_eq!(corruption(error).path, path);
                    found += 1;
                }
            }
        }
    }
    assert!(found > 10 * harmless, "{found} found, {harmless} harmless");
}

#[test]
fn a_flipped_bit_without_a_later_witness_is_a_torn_tail() {
    let (disk, expected, _stage, _database) = opened();
    let newest = newest_wal(&disk);
    let bytes = content(&disk, &newest);
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    let damaged = copy(&disk);
    damaged.corrupt(&newest, |bytes| bytes[end] ^= 1).unwrap();
    let state = state(&Stage::new(Arc::new(damaged))).unwrap();
    assert_eq!(
        state.entries,
        expected.entries[..9],
        "only the last group is gone"
    );
}

#[test]
fn the_idle_witness_turns_a_flipped_bit_into_corruption() {
    let (disk, _, stage, _database) = opened();
    let newest = newest_wal(&disk);
    let end = content(&disk, &newest)
        .iter()
        .rposition(|byte| *byte != 0)
        .unwrap();
    stage.idle();
    let damaged = copy(&disk);
    damaged.corrupt(&newest, |bytes| bytes[end] ^= 1).unwrap();
    let found = corruption(state(&Stage::new(Arc::new(damaged))).unwrap_err());
    assert_eq!(found.path, newest);
}

#[test]
fn the_seal_of_a_repair_turns_a_flipped_bit_into_corruption() {
    let (disk, _, _stage, _database) = opened();
    let newest = newest_wal(&disk);
    let bytes = content(&disk, &newest);
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    let repaired = copy(&disk);
    let stage = Stage::new(Arc::new(repaired.clone()));
    let _database = stage.open().unwrap();
    let damaged = repaired.kill_clone();
    damaged.corrupt(&newest, |bytes| bytes[end] ^= 1).unwrap();
    let found = corruption(state(&Stage::new(Arc::new(damaged))).unwrap_err());
    assert_eq!(found.path, newest);
}

#[test]
fn a_log_that_reads_differently_when_it_is_written_again_is_not_opened() {
    let (disk, _, _stage, _database) = opened();
    let newest = newest_wal(&disk);
    let bytes = content(&disk, &newest);
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    let evicted = copy(&disk);
    let path = newest.clone();
    // The first sync of an open comes when everything was read once.
    evicted.on_sync(Arc::new(move |ordinal, disk: &MemFs| {
        if ordinal == 0 {
            disk.corrupt(&path, |bytes| bytes[end] ^= 1).unwrap();
        }
    }));
    let stage = Stage::new(Arc::new(evicted));
    match state(&stage).unwrap_err() {
        OpenError::Io { path, .. } => assert_eq!(path, newest),
        other => panic!("expected an error of the disk, got {other:?}"),
    }
    // The next open takes what is there for a torn tail.
    state(&stage).unwrap();
}

#[test]
fn half_a_frame_behind_the_log_is_cut_and_nothing_else() {
    let (closed_disk, expected) = closed();
    let (open_disk, _, _stage, _database) = opened();
    for disk in [closed_disk, open_disk] {
        let newest = newest_wal(&disk);
        let bytes = content(&disk, &newest);
        let end = bytes
            .iter()
            .rposition(|byte| *byte != 0)
            .unwrap()
            .next_multiple_of(8);
        let damaged = copy(&disk);
        let half = bytes[64..64 + 60].to_vec();
        let place = |bytes: &mut Vec<u8>| {
            bytes.resize(bytes.len().max(end + half.len()), 0);
            bytes[end..end + half.len()].copy_from_slice(&half);
        };
        damaged.corrupt(&newest, place).unwrap();
        assert_eq!(
            state(&Stage::new(Arc::new(damaged.clone()))).unwrap(),
            expected
        );
        assert_eq!(state(&Stage::new(Arc::new(damaged))).unwrap(), expected);
    }
}

#[test]
fn a_lost_file_of_the_log_is_named() {
    let (disk, _) = closed();
    for path in wal_paths(&disk) {
        let damaged = copy(&disk);
        damaged.remove(&path).unwrap();
        let found = corruption(state(&Stage::new(Arc::new(damaged))).unwrap_err());
        assert_eq!(found.path, path);
    }
}

#[test]
fn a_lost_log_is_noticed_by_its_vote() {
    let (disk, _) = closed();
    for path in wal_paths(&disk) {
        disk.remove(&path).unwrap();
    }
    corruption(state(&Stage::new(Arc::new(disk))).unwrap_err());
}

#[test]
fn an_older_log_beside_a_newer_hard_state_is_corrupt() {
    let (disk, _) = closed();
    let stage = Stage::new(Arc::new(disk.clone()));
    let older = copy(&disk);
    let database = stage.open().unwrap();
    let log = database.log(LogNumber::new(3)).unwrap();
    log.put_vote(b"for another", must()).unwrap();
    stage.executor.run_until_idle();
    database.close();
    let path = directory().join(HARD_STATE);
    let newer = content(&disk, &path);
    older.corrupt(&path, |bytes| *bytes = newer).unwrap();
    corruption(state(&Stage::new(Arc::new(older))).unwrap_err());
}

#[test]
fn a_vote_that_only_hard_state_holds_is_corruption() {
    let (disk, _) = closed();
    let identity = Identity::load(&disk, directory()).unwrap().unwrap();
    let hard_state = HardState::load(&disk, directory(), identity.database).unwrap();
    let stored = |sequence, vote: &'static [u8]| {
        let vote = StoredVote {
            sequence,
            vote: Bytes::from_static(vote),
        };
        hard_state
            .put_votes(&[(LogNumber::new(3), vote)], FileNumber::new(0), 0)
            .unwrap();
        state(&Stage::new(Arc::new(copy(&disk))))
    };
    stored(1, b"for somebody").unwrap();
    corruption(stored(2, b"for somebody").unwrap_err());
    corruption(stored(1, b"for another").unwrap_err());
}

#[test]
fn a_damaged_header_of_the_newest_file_is_corruption() {
    let (disk, _, stage, _database) = opened();
    stage.idle();
    let newest = newest_wal(&disk);
    let damaged = copy(&disk);
    damaged.corrupt(&newest, |bytes| bytes[9] ^= 1).unwrap();
    let found = corruption(state(&Stage::new(Arc::new(damaged))).unwrap_err());
    assert_eq!((found.path, found.offset), (newest, 0));
}

#[test]
fn a_short_older_file_is_named_with_its_end() {
    let (disk, _) = closed();
    let oldest = wal_paths(&disk).remove(0);
    for cut in [1, 8, 40, 41, 500, 1_000] {
        let damaged = copy(&disk);
        damaged
            .corrupt(&oldest, |bytes| bytes.truncate(bytes.len() - cut))
            .unwrap();
        let found = corruption(state(&Stage::new(Arc::new(damaged))).unwrap_err());
        assert_eq!(found.path, oldest);
        assert!(found.offset > 0);
    }
}

#[test]
fn one_slot_of_hard_state_may_be_damaged_but_not_both() {
    let (disk, expected) = closed();
    let path = directory().join(HARD_STATE);
    for slot in [0, 4096] {
        let damaged = copy(&disk);
        damaged
            .corrupt(&path, |bytes| bytes[slot + 20] ^= 1)
            .unwrap();
        let stage = Stage::new(Arc::new(damaged));
        assert_eq!(state(&stage).unwrap(), expected);
        assert_eq!(stage.open().unwrap().boot().get(), 1);
    }
    disk.corrupt(&path, |bytes| {
        bytes[20] ^= 1;
        bytes[4096 + 20] ^= 1;
    })
    .unwrap();
    let found = corruption(state(&Stage::new(Arc::new(disk.clone()))).unwrap_err());
    assert_eq!(found.path, path);
    disk.remove(&path).unwrap();
    let found = corruption(state(&Stage::new(Arc::new(disk))).unwrap_err());
    assert_eq!(found.path, path);
}

#[test]
fn a_damaged_identity_is_corrupt_and_a_missing_one_refused() {
    let (disk, _) = closed();
    let path = directory().join(IDENTITY);
    let damaged = copy(&disk);
    damaged.corrupt(&path, |bytes| bytes[9] ^= 1).unwrap();
    assert_eq!(
        corruption(state(&Stage::new(Arc::new(damaged))).unwrap_err()).path,
        path
    );
    disk.remove(&path).unwrap();
    let refused = state(&Stage::new(Arc::new(disk.clone()))).unwrap_err();
    assert!(
        matches!(refused, OpenError::NotADatabase { .. }),
        "{refused:?}"
    );
    assert!(!disk.exists(&path).unwrap(), "nothing was changed");
}

#[test]
fn files_of_another_database_are_refused() {
    let (disk, _) = closed();
    let other = MemFs::new();
    let stage = Stage::new(Arc::new(other.clone()));
    let stage = Stage {
        seams: Seams {
            rng: Arc::new(SeededRng::new(99)),
            ..stage.seams.clone()
        },
        ..stage
    };
    stage.open().unwrap().close();
    let identity = directory().join(IDENTITY);
    for name in [IDENTITY, HARD_STATE] {
        let mixed = copy(&disk);
        let foreign = content(&other, &directory().join(name));
        mixed
            .corrupt(&directory().join(name), |bytes| *bytes = foreign)
            .unwrap();
        let refused = state(&Stage::new(Arc::new(mixed))).unwrap_err();
        assert!(
            matches!(refused, OpenError::ForeignFile { .. }),
            "{refused:?}"
        );
    }
    let mixed = copy(&disk);
    for name in [IDENTITY, HARD_STATE] {
        let foreign = content(&other, &directory().join(name));
        mixed
            .corrupt(&directory().join(name), |bytes| *bytes = foreign)
            .unwrap();
    }
    let refused = state(&Stage::new(Arc::new(mixed))).unwrap_err();
    assert!(matches!(&refused, OpenError::ForeignFile { path } if *path != identity));
}

#[test]
fn a_newer_format_is_refused_by_its_number() {
    let (disk, _) = closed();
    let path = wal_paths(&disk).pop().unwrap();
    disk.corrupt(&path, |bytes| {
        bytes[4] = 9;
        let check = crc32fast::hash(&bytes[..60]);
        bytes[60..64].copy_from_slice(&check.to_le_bytes());
    })
    .unwrap();
    let refused = state(&Stage::new(Arc::new(disk))).unwrap_err();
    assert!(matches!(
        refused,
        OpenError::NewerFormat {
            found: 9,
            supported: 1,
            ..
        }
    ));
}

#[test]
fn a_damaged_entry_is_found_when_it_is_read() {
    let (disk, _, _stage, database) = opened();
    let oldest = wal_paths(&disk).remove(0);
    disk.corrupt(&oldest, |bytes| bytes[400] ^= 1).unwrap();
    let log = database.log(LogNumber::new(3)).unwrap();
    let read = log.read(LogIndex::new(0)..LogIndex::new(1), usize::MAX);
    assert!(matches!(read, Err(StorageError::Corruption(found)) if found.path == oldest));
}
