//! A batch that its writer can read back before it is written.

use std::collections::HashMap;
use std::sync::OnceLock;

use bytes::Bytes;

use super::{Change, WriteBatch};

/// A [`WriteBatch`] with a lookup by key, in which the latest operation on a key wins.
///
/// For a writer whose operation `k` must see the effects of the operations before it. The lookup
/// answers for this batch alone; what it does not hold is read from a
/// [`ReadView`](crate::ReadView). It is built by the first [`get`](Self::get): a batch that is never
/// read back costs what a [`WriteBatch`] costs.
#[derive(Clone, Debug, Default)]
pub struct IndexedBatch {
    batch: WriteBatch,
    /// The position in `batch` of the latest operation on each key, once somebody asked. Only looked
    /// up, never iterated.
    latest: OnceLock<HashMap<Bytes, usize>>,
}

impl IndexedBatch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends: `key` has `value`.
    pub fn put(&mut self, key: impl Into<Bytes>, value: impl Into<Bytes>) {
        let key = key.into();
        self.note(&key);
        self.batch.put(key, value);
    }

    /// Appends: `key` is absent.
    pub fn delete(&mut self, key: impl Into<Bytes>) {
        let key = key.into();
        self.note(&key);
        self.batch.delete(key);
    }

    /// What the operations so far did to `key`: `None` if they do not touch it, `Some(None)` if the
    /// latest one deletes it, `Some(Some(value))` if the latest one puts `value`.
    pub fn get(&self, key: &[u8]) -> Option<Option<Bytes>> {
        let latest = self.latest.get_or_init(|| self.index());
        let position = *latest.get(key)?;
        match &self.batch.operations[position].change {
            Change::Put(value) => Some(Some(value.clone())),
            Change::Delete => Some(None),
        }
    }

    /// All operations in order: each key with the value that it is given, `None` if it is deleted. A
    /// key comes as often as it was touched.
    pub fn operations(&self) -> impl ExactSizeIterator<Item = (&Bytes, Option<&Bytes>)> {
        let operations = self.batch.operations.iter();
        operations.map(|operation| match &operation.change {
            Change::Put(value) => (&operation.key, Some(value)),
            Change::Delete => (&operation.key, None),
        })
    }

    /// The count of operations, which is also the offset of the next one from the batch's first
    /// sequence number.
    pub fn len(&self) -> usize {
        self.batch.len()
    }

    /// Whether there is no operation.
    pub fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// The bytes of all keys and values.
    pub fn bytes(&self) -> usize {
        self.batch.bytes()
    }

    /// The batch to write; the lookup is dropped.
    pub fn into_batch(self) -> WriteBatch {
        self.batch
    }

    /// Keeps the lookup, if there is one, up with the operation that comes next.
    fn note(&mut self, key: &Bytes) {
        if let Some(latest) = self.latest.get_mut() {
            latest.insert(key.clone(), self.batch.len());
        }
    }

    fn index(&self) -> HashMap<Bytes, usize> {
        let operations = self.batch.operations.iter().enumerate();
        operations
            .map(|(position, operation)| (operation.key.clone(), position))
            .collect()
    }
}
