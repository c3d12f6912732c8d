//! The command line's files: bounded reads, whole replacement, exclusive locks.

use super::*;

#[test]
fn a_file_over_the_limit_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    write_atomically(&path, b"12345").unwrap();
    assert_eq!(read(&path, 5).unwrap(), b"12345");
    assert_eq!(
        read(&path, 4).unwrap_err().kind(),
        io::ErrorKind::FileTooLarge
    );
}

#[test]
fn an_atomic_write_leaves_nothing_beside_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    write_atomically(&path, b"old").unwrap();
    write_atomically(&path, b"new").unwrap();
    assert_eq!(read(&path, 10).unwrap(), b"new");
    assert_eq!(list(directory.path()).unwrap(), ["file"]);
}

#[test]
fn a_lock_is_held_by_one_until_it_is_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("LOCK");
    let held = lock(&path).unwrap();
    assert!(held.is_some());
    assert!(lock(&path).unwrap().is_none());
    drop(held);
    assert!(lock(&path).unwrap().is_some());
}

#[test]
fn the_tail_of_a_long_file_is_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    write_atomically(&path, b"first\nlast\n").unwrap();
    assert_eq!(read_tail(&path, 5).unwrap(), b"last\n");
    assert_eq!(read_tail(&path, 100).unwrap(), b"first\nlast\n");
}
