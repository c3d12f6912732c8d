//! The entries of a scan page, one behind the other in the value of the response.
//!
//! Entry: key length u16, value length u32, revision u64, key, value. A keys-only scan has value
//! length 0. The list has no count: it ends with the value.

use bytes::{BufMut, Bytes, BytesMut};

use crate::{Revision, ScanFault};

/// The first key that sorts behind every key with `prefix`; `None` when no key does, because the
/// prefix is empty or all 0xFF.
pub fn key_after_prefix(prefix: &[u8]) -> Option<Bytes> {
    let last = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut key = prefix.get(..=last)?.to_vec();
    *key.last_mut()? += 1;
    Some(key.into())
}

/// What an entry costs besides its key and value.
pub const SCAN_ENTRY_HEADER_BYTES: usize = 2 + 4 + 8;

/// One record of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanEntry<'a> {
    /// The key, not empty.
    pub key: &'a [u8],
    /// The value; empty in a keys-only scan.
    pub value: &'a [u8],
    /// Revision of the record.
    pub revision: Revision,
}

impl ScanEntry<'_> {
    /// Bytes that [`ScanEntry::encode`] appends.
    pub fn encoded_bytes(&self) -> usize {
        SCAN_ENTRY_HEADER_BYTES + self.key.len() + self.value.len()
    }

    /// Appends the entry to the value of a page.
    ///
    /// # Panics
    /// When the key or value is longer than the data model allows.
    pub fn encode(&self, out: &mut BytesMut) {
        out.put_u16(u16::try_from(self.key.len()).expect("keys are at most 32 KiB"));
        out.put_u32(u32::try_from(self.value.len()).expect("values are at most 8 MiB"));
        out.put_u64(self.revision.get());
        out.put_slice(self.key);
        out.put_slice(self.value);
    }
}

/// Reads the entries of a page; a cut page yields one error and then ends.
#[derive(Clone, Debug)]
pub struct ScanEntries<'a> {
    rest: &'a [u8],
}

impl<'a> ScanEntries<'a> {
    /// Reads from the value of a scan response.
    pub fn new(value: &'a [u8]) -> Self {
        Self { rest: value }
    }

    fn split(&mut self) -> Option<ScanEntry<'a>> {
        let (key_bytes, rest) = self.rest.split_first_chunk()?;
        let (value_bytes, rest) = rest.split_first_chunk()?;
        let (revision, rest) = rest.split_first_chunk()?;
        let key_bytes = usize::from(u16::from_be_bytes(*key_bytes));
        let value_bytes = usize::try_from(u32::from_be_bytes(*value_bytes)).ok()?;
        let (key, rest) = rest.split_at_checked(key_bytes)?;
        let (value, rest) = rest.split_at_checked(value_bytes)?;
        self.rest = rest;
        Some(ScanEntry {
            key,
            value,
            revision: Revision::new(u64::from_be_bytes(*revision)),
        })
    }
}

impl<'a> Iterator for ScanEntries<'a> {
    type Item = Result<ScanEntry<'a>, ScanFault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let entry = self.split();
        if entry.is_none() {
            self.rest = &[];
        }
        Some(entry.ok_or(ScanFault))
    }
}

#[cfg(test)]
mod tests;
