//! Big-endian reading and writing for the formats of this crate.
//!
//! [`Reader`] consumes a [`Bytes`] and hands out slices of it without copying. It never panics:
//! a short or oversized input is a [`CodecError`]. Writers put into a `BytesMut` directly; only
//! length-prefixed strings need help.

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Longest string in a message: an address or a member name.
pub(crate) const STRING_BYTES_MAX: usize = 255;

/// Why bytes from a peer or from the log cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum CodecError {
    /// The input ends inside a field.
    #[error("input ends inside {0}")]
    Truncated(&'static str),
    /// A field holds a value that the format does not define.
    #[error("{field} has undefined value {value}")]
    Undefined {
        /// The field.
        field: &'static str,
        /// What it holds.
        value: u64,
    },
    /// Bytes follow the last field.
    #[error("{0} bytes follow the last field")]
    Trailing(usize),
    /// A count or length is above its limit.
    #[error("{0} is above its limit")]
    TooLarge(&'static str),
    /// A string is not UTF-8.
    #[error("{0} is not utf-8")]
    NotText(&'static str),
}

/// Reads fields from the front of a message.
pub(crate) struct Reader {
    rest: Bytes,
}

impl Reader {
    pub(crate) fn new(input: Bytes) -> Self {
        Self { rest: input }
    }

    pub(crate) fn u8(&mut self, field: &'static str) -> Result<u8, CodecError> {
        self.rest
            .try_get_u8()
            .map_err(|_| CodecError::Truncated(field))
    }

    pub(crate) fn u16(&mut self, field: &'static str) -> Result<u16, CodecError> {
        self.rest
            .try_get_u16()
            .map_err(|_| CodecError::Truncated(field))
    }

    pub(crate) fn u32(&mut self, field: &'static str) -> Result<u32, CodecError> {
        self.rest
            .try_get_u32()
            .map_err(|_| CodecError::Truncated(field))
    }

    pub(crate) fn u64(&mut self, field: &'static str) -> Result<u64, CodecError> {
        self.rest
            .try_get_u64()
            .map_err(|_| CodecError::Truncated(field))
    }

    /// A byte that is 0 or 1.
    pub(crate) fn flag(&mut self, field: &'static str) -> Result<bool, CodecError> {
        match self.u8(field)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(CodecError::Undefined {
                field,
                value: u64::from(other),
            }),
        }
    }

    /// The next `count` bytes, shared with the input.
    pub(crate) fn bytes(&mut self, count: usize, field: &'static str) -> Result<Bytes, CodecError> {
        if self.rest.len() < count {
            return Err(CodecError::Truncated(field));
        }
        Ok(self.rest.split_to(count))
    }

    /// A string behind its length in one byte.
    pub(crate) fn string(&mut self, field: &'static str) -> Result<String, CodecError> {
        let count = usize::from(self.u8(field)?);
        let bytes = self.bytes(count, field)?;
        let text = std::str::from_utf8(&bytes).map_err(|_| CodecError::NotText(field))?;
        Ok(text.to_owned())
    }

    pub(crate) fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// All that is left.
    pub(crate) fn rest(self) -> Bytes {
        self.rest
    }

    /// Ends the reading; nothing may be left.
    pub(crate) fn finish(self) -> Result<(), CodecError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(CodecError::Trailing(self.rest.len()))
        }
    }
}

/// Writes a string behind its length in one byte.
///
/// # Panics
///
/// When the string is longer than [`STRING_BYTES_MAX`]; callers check that at the door.
pub(crate) fn put_string(out: &mut BytesMut, text: &str) {
    let count = u8::try_from(text.len()).expect("strings are checked at the door");
    out.put_u8(count);
    out.put_slice(text.as_bytes());
}
