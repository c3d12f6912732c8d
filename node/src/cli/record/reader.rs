//! Streaming reads of records, with the place of each.

use std::io::{self, BufRead, Read};

use kelp_raft::{KEY_BYTES_MAX, VALUE_BYTES_MAX};

use super::{Record, RecordError, RecordFormat, decode};

/// The longest line of a record within the limits: JSON needs up to six characters for a byte.
pub(crate) const LINE_BYTES_MAX: usize = 6 * (KEY_BYTES_MAX + VALUE_BYTES_MAX) + 64;

/// Why reading stopped.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// The input could not be read.
    #[error("cannot read: {0}")]
    Input(#[from] io::Error),
    /// A line is no record.
    #[error("line {line}: {error}")]
    Line {
        /// Counted from 1, from where reading started.
        line: u64,
        /// What is wrong with it.
        error: RecordError,
    },
    /// A line is longer than any record within the limits.
    #[error("line {line}: longer than {LINE_BYTES_MAX} bytes")]
    TooLong {
        /// Counted from 1, from where reading started.
        line: u64,
    },
    /// The input has no line start where reading should resume.
    #[error(
        "byte {0} is not the start of a line: resume from a number that an earlier import printed"
    )]
    NotAtLine(u64),
}

/// Reads records one by one. Empty lines are skipped; the last line may lack its line feed.
pub(crate) struct RecordReader<R> {
    input: R,
    format: RecordFormat,
    line: u64,
    offset: u64,
    buffer: Vec<u8>,
}

impl<R: BufRead> RecordReader<R> {
    /// Reads from the start of `input`.
    pub(crate) fn new(input: R, format: RecordFormat) -> Self {
        Self {
            input,
            format,
            line: 0,
            offset: 0,
            buffer: Vec::new(),
        }
    }

    /// Skips the first `offset` bytes, which must end with a line feed.
    pub(crate) fn skip(&mut self, offset: u64) -> Result<(), ReadError> {
        let mut last = b'\n';
        while self.offset < offset {
            let available = self.input.fill_buf()?;
            let wanted = usize::try_from(offset - self.offset).unwrap_or(usize::MAX);
            let taken = available.len().min(wanted);
            match available.get(..taken).and_then(<[u8]>::last) {
                Some(byte) => last = *byte,
                None => return Err(ReadError::NotAtLine(offset)),
            }
            self.input.consume(taken);
            self.offset += u64::try_from(taken).expect("a length of memory fits in 64 bits");
        }
        if last == b'\n' {
            Ok(())
        } else {
            Err(ReadError::NotAtLine(offset))
        }
    }

    /// The next record and the offset of the byte behind its line.
    pub(crate) fn next(&mut self) -> Result<Option<(Record, u64)>, ReadError> {
        loop {
            self.buffer.clear();
            let limit = u64::try_from(LINE_BYTES_MAX + 1).expect("a length of memory fits");
            let count = self
                .input
                .by_ref()
                .take(limit)
                .read_until(b'\n', &mut self.buffer)?;
            if count == 0 {
                return Ok(None);
            }
            self.line += 1;
            self.offset += u64::try_from(count).expect("a length of memory fits in 64 bits");
            let line = match self.buffer.strip_suffix(b"\n") {
                Some(line) => line,
                None if count > LINE_BYTES_MAX => {
                    return Err(ReadError::TooLong { line: self.line });
                }
                None => &self.buffer,
            };
            if line.is_empty() {
                continue;
            }
            let record = decode(self.format, line).map_err(|error| ReadError::Line {
                line: self.line,
                error,
            })?;
            return Ok(Some((record, self.offset)));
        }
    }
}
