//! Where the `kelp` program is.

use std::path::PathBuf;

use anyhow::{Context as _, Result};

/// The `kelp` program of the same build as the running test or program.
///
/// # Errors
/// When it has not been built: `cargo build` or `cargo test --workspace` does.
pub fn kelp_program() -> Result<PathBuf> {
    let own = std::env::current_exe().context("this program has no path")?;
    // A test lies in `deps/` beside the programs, a program lies beside them.
    let folders = own.ancestors().skip(1).take(2);
    let found = folders
        .map(|folder| folder.join("kelp"))
        .find(|path| path.is_file());
    found.with_context(|| format!("no program `kelp` beside {}", own.display()))
}
