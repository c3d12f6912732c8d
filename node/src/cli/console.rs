//! Where a command's words go: data to standard output, everything said to a person to standard
//! error.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use super::failure::Failure;

/// Says one line to the person at the terminal. A closed standard error silences it.
pub(crate) fn message(line: impl Display) {
    drop(writeln!(io::stderr().lock(), "kelp: {line}"));
}

/// Writes data to standard output and flushes it.
pub(crate) fn data(bytes: &[u8]) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    output
        .write_all(bytes)
        .and_then(|()| output.flush())
        .map_err(|error| Failure::output(&error))
}

/// Whether a progress bar would be seen.
pub(crate) fn shows_progress() -> bool {
    io::stderr().is_terminal()
}
