//! How a command ends: exit codes that scripts may rely on, and one line for the person who reads
//! it.

use std::io;
use std::process::ExitCode;

/// The exit codes of every command. `kelp status` gives 1 and 2 its own meaning: degraded, and no
/// quorum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Exit {
    /// All that was asked is done.
    Done = 0,
    /// The key is absent or the condition did not hold.
    Negative = 1,
    /// The command line or the configuration is wrong.
    Usage = 2,
    /// The cluster could not be reached or had no leader; nothing was executed.
    Unavailable = 3,
    /// Nobody can tell whether the write was executed.
    Unknown = 4,
    /// Refused for good: identity, rights, limits, a foreign data directory, another cluster.
    Refused = 5,
    /// Ended by Ctrl-C.
    Interrupted = 130,
}

impl Exit {
    /// The number that the process returns.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The exit code that a child of this program returned, for a parent that passes it on.
    pub fn from_code(code: i32) -> Option<Self> {
        Some(match code {
            0 => Self::Done,
            1 => Self::Negative,
            2 => Self::Usage,
            3 => Self::Unavailable,
            4 => Self::Unknown,
            5 => Self::Refused,
            130 => Self::Interrupted,
            _ => return None,
        })
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Why a command did not do what was asked: an exit code and one line that says what to do next.
///
/// The line may be empty when the command has already said everything, as `get` of an absent key
/// does.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{message}")]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// One line, lower case, without a full stop; empty for nothing to print.
    pub message: String,
}

impl Failure {
    /// A failure with its line.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        let message: String = message.into();
        Self {
            exit,
            message: one_line(&without_number(&message)),
        }
    }

    /// A wrong command line or configuration.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// An exit code without a word.
    pub fn silent(exit: Exit) -> Self {
        Self::new(exit, "")
    }

    /// An error with its causes, in one line. A cause that the text before it repeats is left out.
    pub fn caused(exit: Exit, error: &dyn std::error::Error) -> Self {
        let mut message = without_number(&error.to_string());
        let mut cause = error.source();
        while let Some(error) = cause {
            let text = without_number(&error.to_string());
            if !message.contains(&text) {
                message.push_str(": ");
                message.push_str(&lower_first(&text));
            }
            cause = error.source();
        }
        Self::new(exit, message)
    }

    /// The same failure, saying also what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl AsRef<str>) -> Self {
        self.message = format!("{}; {}", self.message, one_line(hint.as_ref()));
        self
    }

    /// A failure of the local file at `path`.
    pub fn file(exit: Exit, path: &std::path::Path, error: &io::Error) -> Self {
        Self::new(exit, format!("{}: {}", path.display(), plain(error)))
    }

    /// A directory that cannot be used, with what helps.
    pub fn directory(path: &std::path::Path, error: &io::Error) -> Self {
        Self::file(Exit::Refused, path, error).hint(directory_hint(error.kind()))
    }

    /// A failure to write to standard output. A reader that went away, like `head`, is no failure
    /// worth a word.
    pub fn output(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::silent(Exit::Done)
        } else {
            Self::usage(format!("cannot write to standard output: {}", plain(error)))
        }
    }
}

/// What helps when the directory of `--dir` cannot be used.
pub(crate) fn directory_hint(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            "a part of that path is a file: choose another with --dir"
        }
        io::ErrorKind::NotFound => "no directory can be made there: choose another with --dir",
        io::ErrorKind::StorageFull => "free some space, or choose another disk with --dir",
        _ => "make it writable for this user, or choose another with --dir",
    }
}

/// The text of an I/O error in lower case and without the number of the operating system.
pub(crate) fn plain(error: &io::Error) -> String {
    lower_first(&without_number(&error.to_string()))
}

/// Takes the numbers of the operating system out, as in "(os error 13)".
fn without_number(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str(part.split_once(')').map_or(part, |(_, rest)| rest));
    }
    plain
}

/// Begins in lower case, unless the first word is in capitals.
fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if second.is_lowercase() => first
            .to_lowercase()
            .chain([second])
            .chain(letters)
            .collect(),
        _ => text.to_owned(),
    }
}

/// Folds line breaks, so that an error stays one line whatever it quotes.
fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
