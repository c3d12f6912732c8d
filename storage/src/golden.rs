//! Compares bytes with the files of `testdata/v1`, which stand for the formats for ever.
//!
//! Setting `KELP_UPDATE_GOLDEN` writes the files instead; their change is then reviewed like code.

use std::path::PathBuf;

/// The bytes of the golden file `name`.
#[expect(
    clippy::disallowed_methods,
    reason = "golden files are read by tests, outside every seam"
)]
pub(crate) fn load(name: &str) -> Vec<u8> {
    std::fs::read(path(name)).expect("the golden file exists")
}

/// Checks that `bytes` are exactly those of the golden file `name`.
#[expect(
    clippy::disallowed_methods,
    reason = "golden files are read by tests, outside every seam"
)]
pub(crate) fn check(name: &str, bytes: &[u8]) {
    if std::env::var_os("KELP_UPDATE_GOLDEN").is_some() {
        std::fs::write(path(name), bytes).expect("the golden file can be written");
    }
    let golden = load(name);
    let difference = golden
        .iter()
        .zip(bytes)
        .position(|(golden, own)| golden != own);
    assert_eq!(
        difference, None,
        "{name} differs from its golden file at this byte"
    );
    assert_eq!(
        golden.len(),
        bytes.len(),
        "{name} is not as long as its golden file"
    );
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("testdata/v1")
        .join(name)
}
