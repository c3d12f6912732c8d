//! The bytes of a manifest and of CURRENT, for ever.

use super::super::current;
use super::*;
use crate::golden;

#[test]
fn a_manifest_has_the_bytes_of_its_golden_file() {
    let (disk, ends) = written();
    // What is behind the last frame is zero up to the file's length.
    let bytes = bytes_of(&disk, "MANIFEST-000003");
    let end = *ends.last().unwrap();
    assert!(bytes[end..].iter().all(|byte| *byte == 0));
    golden::check("MANIFEST-000003", &bytes);
}

#[test]
fn current_has_the_bytes_of_its_golden_file() {
    golden::check("CURRENT", &current::encode(NUMBER));
}

#[test]
fn the_golden_manifest_is_read() {
    let disk = MemFs::new();
    disk.create_dir_all(directory()).unwrap();
    for name in ["CURRENT", "MANIFEST-000003"] {
        let file = disk.create(&directory().join(name)).unwrap();
        file.write_at(&golden::load(name), 0).unwrap();
    }
    assert_eq!(read(&disk).unwrap(), all());
}
