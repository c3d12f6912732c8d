use std::path::Path;

use super::append;

/// The files that the storage engine promises to read for ever.
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../storage/testdata/v1");
/// Room that was reserved behind the last frame.
const RESERVED: usize = 4096;

#[test]
fn half_a_frame_follows_the_last_whole_one_and_nothing_else_changes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("000002.wal");
    let whole = std::fs::read(Path::new(GOLDEN).join("000002.wal")).unwrap();
    let reserved = [whole.as_slice(), &[0; RESERVED]].concat();
    std::fs::write(&path, &reserved).unwrap();
    // The newest file, made ahead of its use.
    std::fs::write(directory.path().join("000003.wal"), [0; RESERVED]).unwrap();

    append(directory.path()).unwrap();

    let torn = std::fs::read(&path).unwrap();
    assert_eq!(torn.len(), reserved.len());
    assert_eq!(torn[..whole.len()], whole, "whole frames stay");
    let tail = &torn[whole.len()..];
    let tail_bytes = tail.iter().rposition(|&byte| byte != 0).unwrap() + 1;
    assert!(tail.starts_with(b"KFRM"), "the tail begins as a frame does");
    assert!(
        tail_bytes < whole.len() / 2,
        "and it is not whole: {tail_bytes} bytes"
    );
}
