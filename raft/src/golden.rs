//! Compares bytes with the files of `testdata/v1`, which stand for the format for ever.
//!
//! Setting `KELP_UPDATE_GOLDEN` writes the files instead; their change is then reviewed like code.

use std::path::PathBuf;

/// Checks that `bytes` are exactly those of the golden file `name`.
#[expect(
    clippy::disallowed_methods,
    reason = "golden files are read by tests, outside every seam"
)]
pub(crate) fn check(name: &str, bytes: &[u8]) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("testdata/v1")
        .join(name);
    if std::env::var_os("KELP_UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, bytes).expect("the golden file can be written");
    }
    let golden = std::fs::read(&path).expect("the golden file exists");
    assert_eq!(golden, bytes, "{name} differs from its golden file");
}
