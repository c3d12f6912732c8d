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
/// A call comes after the entry is visible to readers and before the proposer of the entry gets
/// its outcome. It must not block: apply waits for it.
pub trait ApplyObserver: Send + Sync {
    /// The entry at `index` was applied, with these sub-batches of this node in it, at least one.
    fn applied(&self, index: LogIndex, own: &[OwnSubBatch<'_>]);

    /// The state was replaced by that of another node, which has applied everything up to `index`.
    ///
    /// Of the entries that were skipped nothing will be told. `own_last` is this node's last
    /// sub-batch in the new state: whoever waits for the state after it or an earlier one waits in
    /// vain. What became of the sub-batches themselves is found out by proposing them again.
    fn installed(&self, index: LogIndex, own_last: Option<(Boot, BatchNumber)>);
}
