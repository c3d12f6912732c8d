//! Where the repository lies and which files it holds.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// The root folder of the repository.
pub(crate) fn root() -> Result<PathBuf> {
    // This crate lies in `scripts/xtask`, two folders below the root.
    let manifest = std::env::var("CARGO_MANIFEST_DIR").context("call me by `cargo xtask`")?;
    let root = Path::new(&manifest)
        .ancestors()
        .nth(2)
        .context("xtask has left its folder")?;
    Ok(root.to_path_buf())
}

/// The files that git tracks or would track, relative to `root`, sorted.
pub(crate) fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let output = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(root)
        .output()
        .context("git is needed to list the files")?;
    ensure!(
        output.status.success(),
        "git ls-files failed: {}",
        output.status
    );
    let listing = String::from_utf8(output.stdout).context("a file name is not UTF-8")?;
    let mut files: Vec<PathBuf> = listing
        .split_terminator('\0')
        .map(PathBuf::from)
        // A file deleted but not yet committed is still listed.
        .filter(|path| root.join(path).is_file())
        .collect();
    files.sort();
    files.dedup();
    Ok(files)
}
