//! Merges sorted sources of versions into one sorted sequence.

use bytes::Bytes;

use crate::internal_key::{Trailer, compare};

/// A sorted sequence of versions, walked forward.
pub(super) trait Source {
    type Error;

    /// The version at which it stands; none at the end.
    fn entry(&self) -> Option<(&[u8], Trailer)>;

    /// The value of that version; none at the end.
    fn value(&self) -> Option<Bytes>;

    /// Goes to the next version.
    fn advance(&mut self) -> Result<(), Self::Error>;
}

/// Walks all versions of all sources, in the order of [`crate::internal_key`].
///
/// The sources are kept in order of the versions at which they stand, so the usual step, where the
/// same source goes on, costs one comparison. Of equal versions that of the earlier source comes
/// first; sources are given newest first.
pub(super) struct Merge<S> {
    sources: Vec<S>,
    /// Those that have not ended, the one whose version comes next first.
    order: Vec<usize>,
}

impl<S: Source> Merge<S> {
    /// Merges sources that stand at their first versions, newest source first.
    pub(super) fn new(sources: Vec<S>) -> Self {
        let mut merge = Self {
            order: Vec::with_capacity(sources.len()),
            sources,
        };
        for index in 0..merge.sources.len() {
            merge.place(index);
        }
        merge
    }

    /// The source that stands at the next version; none at the end.
    pub(super) fn head(&self) -> Option<&S> {
        self.order.first().map(|&index| &self.sources[index])
    }

    /// Goes over the next version.
    pub(super) fn advance(&mut self) -> Result<(), S::Error> {
        let Some(&index) = self.order.first() else {
            return Ok(());
        };
        self.sources[index].advance()?;
        let still_first = match (self.sources[index].entry(), self.order.get(1)) {
            (Some(entry), Some(&second)) => {
                let other = self.sources[second].entry();
                other.is_some_and(|other| comes_first((index, entry), (second, other)))
            }
            (Some(_), None) => true,
            (None, _) => false,
        };
        if !still_first {
            self.order.remove(0);
            self.place(index);
        }
        Ok(())
    }

    /// Puts a source where it belongs in the order, unless it has ended.
    fn place(&mut self, index: usize) {
        let Some(entry) = self.sources[index].entry() else {
            return;
        };
        let before = |&other: &usize| {
            let found = self.sources[other].entry();
            found.is_some_and(|found| comes_first((other, found), (index, entry)))
        };
        let at = self.order.partition_point(before);
        self.order.insert(at, index);
    }
}

fn comes_first(left: (usize, (&[u8], Trailer)), right: (usize, (&[u8], Trailer))) -> bool {
    compare(left.1, right.1).then(left.0.cmp(&right.0)).is_lt()
}
