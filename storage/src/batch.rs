//! Writes gathered to become visible together.
//!
//! A [`WriteBatch`] is a plain list in the order of its calls; nothing is merged, because every
//! operation has a sequence number of its own. [`IndexedBatch`] adds a lookup for a writer that
//! must read its own pending writes. Neither knows the keyspace that will take it; limits are
//! checked there.

mod indexed;
#[cfg(test)]
mod tests;

use bytes::Bytes;

pub use indexed::IndexedBatch;

/// What one operation does to its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// The key has this value from now on.
    Put(Bytes),
    /// The key is absent from now on.
    Delete,
}

impl Change {
    /// The value that a reader sees: none after a delete.
    pub(crate) fn into_value(self) -> Option<Bytes> {
        match self {
            Self::Put(value) => Some(value),
            Self::Delete => None,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Put(value) => value.len(),
            Self::Delete => 0,
        }
    }
}

/// One entry of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Operation {
    pub(crate) key: Bytes,
    pub(crate) change: Change,
}

/// An ordered list of puts and deletes that a keyspace makes visible at once.
///
/// Keys and values are kept as given. Once written, a value and a key of some length still share
/// the buffer that they were cut from, and keep all of it alive for as long as one of them lives.
#[derive(Clone, Debug, Default)]
pub struct WriteBatch {
    operations: Vec<Operation>,
    bytes: usize,
    key_bytes_longest: usize,
}

impl WriteBatch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends: `key` has `value`. The empty key and the empty value are legal.
    pub fn put(&mut self, key: impl Into<Bytes>, value: impl Into<Bytes>) {
        self.push(key.into(), Change::Put(value.into()));
    }

    /// Appends: `key` is absent. Legal also when it never existed.
    pub fn delete(&mut self, key: impl Into<Bytes>) {
        self.push(key.into(), Change::Delete);
    }

    /// The count of operations.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Whether there is no operation.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// The bytes of all keys and values.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The length of the longest key, 0 for an empty batch.
    pub(crate) fn key_bytes_longest(&self) -> usize {
        self.key_bytes_longest
    }

    /// The operations in the order of the calls.
    pub(crate) fn into_operations(self) -> Vec<Operation> {
        self.operations
    }

    fn push(&mut self, key: Bytes, change: Change) {
        self.bytes += key.len() + change.bytes();
        self.key_bytes_longest = self.key_bytes_longest.max(key.len());
        self.operations.push(Operation { key, change });
    }
}
