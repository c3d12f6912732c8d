//! The list of typed values in the `extra` part of a frame: tag u8, length u16, value.
//!
//! Requests call them options, responses fields. This module knows the list, not the meanings.

use bytes::{BufMut, BytesMut};

use crate::OptionFault;

/// Reads the list from front to back; a cut list yields one error and then ends.
pub(crate) struct TlvReader<'a> {
    rest: &'a [u8],
}

impl<'a> TlvReader<'a> {
    pub(crate) fn new(extra: &'a [u8]) -> Self {
        Self { rest: extra }
    }
}

impl<'a> Iterator for TlvReader<'a> {
    type Item = Result<(u8, &'a [u8]), OptionFault>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let item = self.rest.split_first_chunk().and_then(|(head, rest)| {
            let [tag, high, low] = *head;
            let bytes = usize::from(u16::from_be_bytes([high, low]));
            let (value, rest) = rest.split_at_checked(bytes)?;
            self.rest = rest;
            Some((tag, value))
        });
        if item.is_none() {
            self.rest = &[];
        }
        Some(item.ok_or(OptionFault::Truncated))
    }
}

/// Appends one typed value. The value is one of this crate's own, or has been checked to be short.
pub(crate) fn put(out: &mut BytesMut, tag: u8, value: &[u8]) {
    let bytes = u16::try_from(value.len()).expect("typed values are checked to fit a u16");
    out.put_u8(tag);
    out.put_u16(bytes);
    out.put_slice(value);
}

/// Reads a value of exactly `N` bytes.
pub(crate) fn fixed<const N: usize>(value: &[u8]) -> Result<[u8; N], OptionFault> {
    value.try_into().map_err(|_| OptionFault::BadValue)
}

/// Requires a value without content: the tag alone says it.
pub(crate) fn empty(value: &[u8]) -> Result<(), OptionFault> {
    fixed::<0>(value).map(|_| ())
}
