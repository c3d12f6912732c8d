//! Who may open a directory.

use super::stage::{Stage, directory};
use super::*;
use crate::vfs::MemFs;

#[test]
fn a_second_open_of_one_directory_is_refused() {
    let stage = Stage::new(Arc::new(MemFs::new()));
    let database = stage.open().unwrap();
    assert!(matches!(stage.open(), Err(OpenError::Locked { .. })));
    database.close();
    stage.open().unwrap();
}

#[test]
fn a_second_open_of_one_real_directory_is_refused() {
    let real = tempfile::tempdir().unwrap();
    let stage = Stage::new(Arc::new(RealFs));
    let open =
        |path: &Path| Database::open(path, DatabaseOptions::for_tests(), stage.seams.clone());
    let database = open(real.path()).unwrap();
    let sideways = real
        .path()
        .join("..")
        .join(real.path().file_name().unwrap());
    assert!(matches!(open(&sideways), Err(OpenError::Locked { .. })));
    drop(database);
    open(&sideways).unwrap();
}

#[test]
fn a_directory_with_other_files_is_refused_and_not_changed() {
    let disk = MemFs::new();
    disk.create_dir_all(directory()).unwrap();
    for name in ["000001.wal", "notes.txt"] {
        let path = directory().join(name);
        disk.create(&path).unwrap();
        let refused = Stage::new(Arc::new(disk.clone())).open().unwrap_err();
        assert!(matches!(refused, OpenError::NotADatabase { file, .. } if file == name));
        assert_eq!(disk.list(directory()).unwrap(), [name]);
        disk.remove(&path).unwrap();
    }
    Stage::new(Arc::new(disk)).open().unwrap();
}

#[test]
fn a_directory_of_before_the_catalog_gets_one() {
    let disk = MemFs::new();
    drop(Stage::new(Arc::new(disk.clone())).open().unwrap());
    for name in ["CURRENT", "MANIFEST-000001"] {
        disk.remove(&directory().join(name)).unwrap();
    }
    drop(Stage::new(Arc::new(disk.clone())).open().unwrap());
    let names = disk.list(directory()).unwrap();
    for name in ["CURRENT", "MANIFEST-000001"] {
        assert!(names.iter().any(|found| found == name), "{names:?}");
    }
}

#[test]
fn a_directory_with_a_damaged_manifest_is_refused_and_not_changed() {
    let disk = MemFs::new();
    drop(Stage::new(Arc::new(disk.clone())).open().unwrap());
    let path = directory().join("MANIFEST-000001");
    disk.corrupt(&path, |bytes| bytes[70] ^= 1).unwrap();
    let before = disk.list(directory()).unwrap();
    let refused = Stage::new(Arc::new(disk.clone())).open().unwrap_err();
    assert!(matches!(&refused, OpenError::Corruption(found) if found.path == path));
    assert_eq!(disk.list(directory()).unwrap(), before);
}

#[test]
fn a_directory_is_bound_to_one_owner_for_ever() {
    let stage = Stage::new(Arc::new(MemFs::new()));
    let database = stage.open().unwrap();
    assert_eq!(database.owner(), None);
    assert!(matches!(
        database.bind(b""),
        Err(StorageError::TooLarge { .. })
    ));
    assert!(matches!(
        database.bind(&[1; 1025]),
        Err(StorageError::TooLarge { .. })
    ));
    database.bind(b"node 1 of some cluster").unwrap();
    database.bind(b"node 1 of some cluster").unwrap();
    drop(database);
    let database = stage.open().unwrap();
    assert_eq!(database.owner().unwrap(), "node 1 of some cluster");
    let refused = database.bind(b"node 2").unwrap_err();
    assert!(
        matches!(refused, StorageError::OwnedByAnother { found } if found == "node 1 of some cluster")
    );
}

#[test]
fn the_boot_count_rises_with_each_start() {
    let stage = Stage::new(Arc::new(MemFs::new()));
    for count in 1..=5 {
        let database = stage.open().unwrap();
        assert_eq!(database.boot().get(), count - 1);
        assert_eq!(database.raise_boot().unwrap().get(), count);
        assert_eq!(database.boot().get(), count);
    }
}

#[test]
fn limits_are_refused_before_anything_is_written() {
    let stage = Stage::new(Arc::new(MemFs::new()));
    let database = stage.open().unwrap();
    for number in 0..48 {
        database.log(LogNumber::new(number)).unwrap();
    }
    database.log(LogNumber::new(47)).unwrap();
    assert!(matches!(
        database.log(LogNumber::new(48)),
        Err(StorageError::TooLarge { .. })
    ));
    let first = database.keyspace("state").unwrap();
    assert_eq!(first.name(), database.keyspace("state").unwrap().name());
    assert!(database.admission_open());
    assert_eq!(database.directory(), directory());
}

#[test]
fn files_that_hold_nothing_are_removed_at_open() {
    let disk = MemFs::new();
    for _ in 0..5 {
        let stage = Stage::new(Arc::new(disk.clone()));
        let database = stage.open().unwrap();
        stage.executor.run_until_idle();
        database.close();
    }
    let database = Stage::new(Arc::new(disk.clone())).open().unwrap();
    let names = disk.list(directory()).unwrap();
    assert_eq!(
        names,
        [
            "CURRENT",
            "HARDSTATE",
            "IDENTITY",
            "LOCK",
            "MANIFEST-000001"
        ],
        "nothing was ever appended"
    );
    drop(database);
}
