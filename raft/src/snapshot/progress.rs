//! How far a transfer is: pure bookkeeping of files that are written one after the other.

use crate::message::Position;

/// Invariants: `at` is the end of the last file, as position of the file after it, or lies before
/// the end of a file; empty files are passed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Progress {
    lengths: Vec<u64>,
    at: Position,
}

impl Progress {
    /// The start of files of these lengths.
    pub(crate) fn new(lengths: Vec<u64>) -> Self {
        let at = Position { file: 0, offset: 0 };
        let mut progress = Self { lengths, at };
        progress.pass_whole_files();
        progress
    }

    /// Where the next byte belongs.
    pub(crate) fn at(&self) -> Position {
        self.at
    }

    /// Whether all files are complete.
    pub(crate) fn is_done(&self) -> bool {
        self.left().is_none()
    }

    /// Whether a piece of `count` bytes fits exactly here.
    pub(crate) fn takes(&self, at: Position, count: usize) -> bool {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        at == self.at && self.left().is_some_and(|left| count <= left)
    }

    /// Takes note of `count` bytes that were written; [`Self::takes`] allowed them.
    pub(crate) fn took(&mut self, count: usize) {
        self.at.offset += u64::try_from(count).expect("it was found to fit");
        self.pass_whole_files();
    }

    /// Bytes that the current file lacks; none when there is no current file.
    fn left(&self) -> Option<u64> {
        let file = usize::try_from(self.at.file).ok()?;
        Some(self.lengths.get(file)? - self.at.offset)
    }

    fn pass_whole_files(&mut self) {
        while self.left() == Some(0) {
            self.at = Position {
                file: self.at.file + 1,
                offset: 0,
            };
        }
    }
}

#[cfg(test)]
mod tests;
