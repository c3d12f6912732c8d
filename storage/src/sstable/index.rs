//! Leads from a key to the block that may hold it.
//!
//! One entry per data block: a version at or behind the last one of the block and before the first
//! one of the next, and where the block is. An index over [`IndexLimits`] is cut into partitions,
//! and an index of the partitions leads to them.

use super::block::BlockBuilder;
use super::format::Handle;
use crate::internal_key::Trailer;

/// How an index is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IndexLimits {
    /// Up to this length, the index is one block, which readers keep in memory.
    pub(super) single_bytes_max: usize,
    /// Beyond it, the target length of the partitions, which are read and cached like data.
    pub(super) partition_bytes_target: usize,
}

/// Collects the entries of an index.
#[derive(Debug, Default)]
pub(super) struct IndexBuilder {
    entries: Vec<IndexEntry>,
    /// About the length of the index as one block.
    bytes: usize,
}

#[derive(Debug)]
struct IndexEntry {
    user_key: Vec<u8>,
    trailer: Trailer,
    handle: Handle,
}

impl IndexBuilder {
    /// Adds the block at `handle`, which ends with `last`; `next` is the user key after it, none
    /// at the end of the table.
    pub(super) fn add(&mut self, last: (&[u8], Trailer), next: Option<&[u8]>, handle: Handle) {
        let (user_key, trailer) = separator(last, next);
        self.push(IndexEntry {
            user_key,
            trailer,
            handle,
        });
    }

    fn push(&mut self, entry: IndexEntry) {
        self.bytes += BlockBuilder::entry_bytes_max(&entry.user_key, &[]);
        self.entries.push(entry);
    }

    /// The count of blocks.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Writes the index through `append`, which puts a block into the file; answers where the
    /// index is and whether it leads to partitions.
    pub(super) fn finish<E>(
        self,
        limits: IndexLimits,
        mut append: impl FnMut(&[u8]) -> Result<Handle, E>,
    ) -> Result<(Handle, bool), E> {
        let mut block = BlockBuilder::default();
        if self.bytes <= limits.single_bytes_max {
            let top = write(&mut block, &self.entries, &mut append)?;
            return Ok((top, false));
        }
        let mut partitions = Self::default();
        let mut rest = self.entries.as_slice();
        while !rest.is_empty() {
            let count = partition_len(rest, limits.partition_bytes_target);
            let (partition, others) = rest.split_at(count);
            let handle = write(&mut block, partition, &mut append)?;
            if let Some(last) = partition.last() {
                partitions.push(IndexEntry {
                    user_key: last.user_key.clone(),
                    trailer: last.trailer,
                    handle,
                });
            }
            rest = others;
        }
        let top = write(&mut block, &partitions.entries, &mut append)?;
        Ok((top, true))
    }
}

/// How many of `entries`, at least one, make a partition.
fn partition_len(entries: &[IndexEntry], bytes_target: usize) -> usize {
    let mut bytes = 0;
    let fits = |entry: &&IndexEntry| {
        bytes += BlockBuilder::entry_bytes_max(&entry.user_key, &[]);
        bytes <= bytes_target
    };
    entries.iter().take_while(fits).count().max(1)
}

fn write<E>(
    block: &mut BlockBuilder,
    entries: &[IndexEntry],
    append: &mut impl FnMut(&[u8]) -> Result<Handle, E>,
) -> Result<Handle, E> {
    let mut value = Vec::new();
    for entry in entries {
        value.clear();
        entry.handle.encode(&mut value);
        block.add(&entry.user_key, entry.trailer, &value);
    }
    block.finish(append)
}

/// A short key and trailer at or behind `last` and before every version of `next`, or, where one
/// user key goes on in the next block, `last` itself.
fn separator(last: (&[u8], Trailer), next: Option<&[u8]>) -> (Vec<u8>, Trailer) {
    let (user_key, trailer) = last;
    let Some(next) = next else {
        return (user_key.to_vec(), Trailer::AFTER_ALL);
    };
    if user_key == next {
        return (user_key.to_vec(), trailer);
    }
    let same = |(left, right): &(&u8, &u8)| left == right;
    let shared = user_key.iter().zip(next).take_while(same).count();
    // The keys differ, and `next` is the greater one, so it goes on where they part.
    if next.len() > shared + 1 {
        return (next[..=shared].to_vec(), Trailer::AFTER_ALL);
    }
    (user_key.to_vec(), Trailer::AFTER_ALL)
}

#[cfg(test)]
mod tests;
