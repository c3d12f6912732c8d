//! Who is told what was applied.

use kelp_storage::{Boot, LogIndex};

use crate::model::{BatchNumber, SubBatchOutcome};
use crate::state::StateView;

/// One of this node's own sub-batches in an applied entry.
pub struct OwnSubBatch<'a> {
    /// The boot of this node that sent it.
    pub boot: Boot,
    /// Its number within that boot.
    pub batch: BatchNumber,
    /// What became of it.
    pub outcome: &'a SubBatchOutcome,
    /// The state right after it.
    pub view: StateView,
}

/// Told about applied entries, in order, on the applier's thread.
///
/// The call comes after the entry is visible to readers and before the proposer of the entry gets
/// its outcome. It must not block: apply waits for it.
pub trait ApplyObserver: Send + Sync {
    /// The entry at `index` was applied, with these sub-batches of this node in it, at least one.
    fn applied(&self, index: LogIndex, own: &[OwnSubBatch<'_>]);
}
