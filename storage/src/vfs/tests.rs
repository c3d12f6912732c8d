use std::collections::BTreeSet;
use std::path::PathBuf;

use kelp_seams::{Rng, SeededRng};

use super::*;

fn read_all(vfs: &dyn Vfs, path: &Path) -> Vec<u8> {
    let file = vfs.open(path).unwrap();
    let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
    assert_eq!(read_full(&*file, &mut bytes, 0).unwrap(), bytes.len());
    bytes
}

/// What both file systems must do alike.
fn check_semantics(vfs: &dyn Vfs, root: &Path) {
    let directory = root.join("a/b");
    vfs.create_dir_all(&directory).unwrap();
    vfs.create_dir_all(&directory).unwrap();
    let path = directory.join("one");
    let file = vfs.create(&path).unwrap();
    assert_eq!(
        vfs.create(&path).err().unwrap().kind(),
        io::ErrorKind::AlreadyExists
    );
    file.write_at(b"hello", 3).unwrap();
    assert_eq!(read_all(vfs, &path), b"\0\0\0hello");
    file.allocate(20).unwrap();
    file.allocate(10).unwrap();
    assert_eq!(file.len().unwrap(), 20);
    file.set_len(5).unwrap();
    file.set_len(7).unwrap();
    file.sync_data().unwrap();
    assert_eq!(read_all(vfs, &path), b"\0\0\0he\0\0");
    let other = directory.join("two");
    vfs.rename(&path, &other).unwrap();
    vfs.sync_dir(&directory).unwrap();
    assert!(!vfs.exists(&path).unwrap());
    assert!(vfs.exists(&other).unwrap());
    assert_eq!(vfs.list(&directory).unwrap(), ["two"]);
    assert_eq!(
        vfs.open(&path).err().unwrap().kind(),
        io::ErrorKind::NotFound
    );
    vfs.remove(&other).unwrap();
    let mut byte = [0; 1];
    assert_eq!(
        file.read_at(&mut byte, 3).unwrap(),
        1,
        "an open file outlives its name"
    );
    assert_eq!(byte, *b"h");
    let lock = vfs.lock(&directory.join("LOCK")).unwrap();
    let second = vfs.lock(&directory.join("LOCK"));
    assert_eq!(second.err().unwrap().kind(), io::ErrorKind::WouldBlock);
    drop(lock);
    drop(vfs.lock(&directory.join("LOCK")).unwrap());
    assert!(vfs.free_space(&directory).unwrap() > 0);
}

#[test]
fn real_and_memory_files_behave_alike() {
    let directory = tempfile::tempdir().unwrap();
    check_semantics(&RealFs, directory.path());
    check_semantics(&MemFs::new(), Path::new("/"));
    check_semantics(&FaultFs::new(Arc::new(MemFs::new())), Path::new("/"));
}

fn crash_outcomes(vfs: &MemFs, observe: impl Fn(&MemFs) -> String) -> BTreeSet<String> {
    let rng = SeededRng::new(1);
    (0..200).map(|_| observe(&vfs.crash_clone(&rng))).collect()
}

#[test]
fn a_crash_keeps_what_was_synced_and_any_subset_of_the_rest() {
    let vfs = MemFs::new();
    let (directory, path) = (PathBuf::from("/d"), PathBuf::from("/d/file"));
    vfs.create_dir_all(&directory).unwrap();
    let file = vfs.create(&path).unwrap();
    file.write_at(&[b'a'; 1024], 0).unwrap();
    file.sync_data().unwrap();
    vfs.sync_dir(&directory).unwrap();
    file.write_at(&[b'b'; 1024], 0).unwrap();
    let seen = crash_outcomes(&vfs, |image| {
        let bytes = read_all(image, &path);
        assert_eq!(bytes.len(), 1024);
        assert!(
            bytes[..512].iter().all(|byte| *byte == bytes[0]),
            "sectors are whole"
        );
        format!("{}{}", char::from(bytes[0]), char::from(bytes[512]))
    });
    assert_eq!(
        seen.into_iter().collect::<Vec<_>>(),
        ["aa", "ab", "ba", "bb"]
    );
}

#[test]
fn a_crash_may_lose_length_and_names_until_they_are_synced() {
    let vfs = MemFs::new();
    let directory = PathBuf::from("/d");
    vfs.create_dir_all(&directory).unwrap();
    let file = vfs.create(&directory.join("old")).unwrap();
    file.sync_all().unwrap();
    let names = |image: &MemFs| image.list(Path::new("/d")).unwrap().join(",");
    assert_eq!(
        crash_outcomes(&vfs, names),
        ["", "old"].map(String::from).into()
    );
    vfs.sync_dir(&directory).unwrap();
    vfs.rename(&directory.join("old"), &directory.join("new"))
        .unwrap();
    assert_eq!(
        crash_outcomes(&vfs, names),
        ["new", "old"].map(String::from).into()
    );
    vfs.sync_dir(&directory).unwrap();
    file.write_at(b"x", 0).unwrap();
    let length = |image: &MemFs| {
        image
            .open(Path::new("/d/new"))
            .unwrap()
            .len()
            .unwrap()
            .to_string()
    };
    assert_eq!(
        crash_outcomes(&vfs, length),
        ["0", "1"].map(String::from).into()
    );
    file.sync_data().unwrap();
    assert_eq!(crash_outcomes(&vfs, length), ["1"].map(String::from).into());
}

#[test]
fn the_hook_sees_the_disk_before_each_sync() {
    let vfs = MemFs::new();
    vfs.create_dir_all(Path::new("/d")).unwrap();
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let inside = Arc::clone(&seen);
    vfs.on_sync(Arc::new(move |ordinal, disk: &MemFs| {
        let rng = SeededRng::new(ordinal);
        let _ = rng.next_u64();
        inside
            .lock()
            .unwrap()
            .push((ordinal, disk.list(Path::new("/d")).unwrap().len()));
    }));
    vfs.create(Path::new("/d/one"))
        .unwrap()
        .sync_data()
        .unwrap();
    vfs.sync_dir(Path::new("/d")).unwrap();
    assert_eq!(*seen.lock().unwrap(), [(0, 1), (1, 1)]);
    assert_eq!(vfs.sync_count(), 2);
}

#[test]
fn rules_choose_by_operation_name_and_count() {
    let vfs = FaultFs::new(Arc::new(MemFs::new()));
    vfs.create_dir_all(Path::new("/d")).unwrap();
    let wal = vfs.create(Path::new("/d/000001.wal")).unwrap();
    let other = vfs.create(Path::new("/d/other")).unwrap();
    vfs.add(FaultRule {
        operation: Some(FaultOperation::Write),
        name: Some("*.wal".to_owned()),
        skip: 1,
        count: 1,
        fault: Fault::ShortWrite {
            bytes: 2,
            errno: 28,
        },
    });
    other.write_at(b"abc", 0).unwrap();
    wal.write_at(b"abc", 0).unwrap();
    let error = wal.write_at(b"xyz", 0).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(28));
    assert_eq!(read_all(&vfs, Path::new("/d/000001.wal")), b"xyc");
    wal.write_at(b"xyz", 0).unwrap();
}

#[test]
fn a_kill_keeps_what_is_visible_and_makes_none_of_it_durable() {
    let vfs = MemFs::new();
    let (directory, path) = (PathBuf::from("/d"), PathBuf::from("/d/file"));
    vfs.create_dir_all(&directory).unwrap();
    let file = vfs.create(&path).unwrap();
    file.write_at(b"synced", 0).unwrap();
    file.sync_data().unwrap();
    vfs.sync_dir(&directory).unwrap();
    file.write_at(b"writes", 0).unwrap();
    vfs.rename(&path, &directory.join("other")).unwrap();
    let _held = vfs.lock(&directory.join("LOCK")).unwrap();
    let killed = vfs.kill_clone();
    file.write_at(b"nobody", 0).unwrap();
    assert_eq!(read_all(&killed, &directory.join("other")), b"writes");
    killed.lock(&directory.join("LOCK")).unwrap();
    let seen = crash_outcomes(&killed, |image| {
        let names = image.list(&directory).unwrap();
        let name = names.iter().find(|name| *name != "LOCK").unwrap();
        let bytes = read_all(image, &directory.join(name));
        format!("{name} {}", String::from_utf8(bytes).unwrap())
    });
    let expected = ["file synced", "file writes", "other synced", "other writes"];
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn what_a_failed_sync_lost_stays_visible_and_only_writing_it_again_saves_it() {
    let disk = MemFs::new();
    let vfs = FaultFs::over(disk.clone());
    vfs.create_dir_all(Path::new("/d")).unwrap();
    let path = Path::new("/d/file");
    let file = vfs.create(path).unwrap();
    vfs.sync_dir(Path::new("/d")).unwrap();
    vfs.add(FaultRule::once(
        Some(FaultOperation::Sync),
        0,
        Fault::LostSync { errno: 5 },
    ));
    file.write_at(b"lost", 0).unwrap();
    assert_eq!(file.sync_data().unwrap_err().raw_os_error(), Some(5));
    file.sync_data().unwrap();
    let content = |image: &MemFs| String::from_utf8(read_all(image, path)).unwrap();
    assert_eq!(content(&disk), "lost");
    assert_eq!(crash_outcomes(&disk, content), [String::new()].into());
    file.write_at(b"lost", 0).unwrap();
    file.sync_data().unwrap();
    assert_eq!(crash_outcomes(&disk, content), ["lost".to_owned()].into());
}

#[test]
#[expect(clippy::disallowed_methods, reason = "looks at what the seam made")]
fn real_files_and_directories_are_for_their_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("a/b");
    RealFs.create_dir_all(&directory).unwrap();
    RealFs.create(&directory.join("file")).unwrap();
    RealFs.lock(&directory.join("LOCK")).unwrap();
    let mode = |name: &str| {
        let found = std::fs::metadata(root.path().join(name)).unwrap();
        found.permissions().mode() & 0o777
    };
    let modes = ["a", "a/b", "a/b/file", "a/b/LOCK"].map(mode);
    assert_eq!(modes, [0o700, 0o700, 0o600, 0o600]);
}
