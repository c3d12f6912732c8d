//! What a writer gets for a batch.

use std::fmt;
use std::sync::Arc;

use super::Sources;
use crate::read_view::ReadView;
use crate::sequence_number::SequenceNumber;

/// The sequence numbers that a batch got; operation `k` has `first` + `k`. Keeps what the states
/// within the batch need, and so the memory of it.
#[derive(Clone)]
pub struct Written {
    /// That of the first operation.
    pub first: SequenceNumber,
    /// That of the last operation, which the newest view includes.
    pub last: SequenceNumber,
    /// The sources into whose active memtable it was written.
    pub(super) sources: Arc<Sources>,
}

impl Written {
    /// The state right after the operation `sequence` of the batch; a number outside of the batch
    /// means the nearest one inside.
    pub fn view_at(&self, sequence: SequenceNumber) -> ReadView {
        let sequence = sequence.clamp(self.first, self.last);
        ReadView::new(Arc::clone(&self.sources), sequence)
    }
}

impl fmt::Debug for Written {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Written")
            .field("first", &self.first)
            .field("last", &self.last)
            .finish_non_exhaustive()
    }
}
