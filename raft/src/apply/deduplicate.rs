//! Whether a sub-batch is executed, and what the state remembers of it.
//!
//! A node numbers its sub-batches without gaps within one boot and may send each of them several
//! times. Only the next one of the newest boot is executed:
//!
//! ```text
//! boot older than the newest           stale boot, no effect
//! boot newer, batch 1                  executed; the results of the older boot are dropped
//! boot newer, batch above 1            gap, no effect
//! same boot, batch = last + 1          executed; the results below its floor are dropped
//! same boot, batch above that          gap, no effect
//! same boot, floor <= batch <= last    the stored result, no effect
//! same boot, batch below the floor     executed, result forgotten, no effect
//! ```

use std::cmp::Ordering;

use bytes::Bytes;
use kelp_storage::IndexedBatch;

use crate::model::{BatchNumber, SubBatchId, SubBatchOutcome};
use crate::state::{NodeProgress, StateKey};

/// What to do with a sub-batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// Execute its commands.
    Execute,
    /// Answer with the stored result.
    Stored,
    /// Answer with this outcome.
    Refuse(SubBatchOutcome),
}

/// Decides by the progress of the sub-batch's node, `None` when it has sent nothing yet.
pub(super) fn admit(progress: Option<&NodeProgress>, id: SubBatchId) -> Admission {
    let first_of_boot = |batch| match batch {
        BatchNumber::FIRST => Admission::Execute,
        _ => Admission::Refuse(SubBatchOutcome::Gap {
            expected: BatchNumber::FIRST,
        }),
    };
    let Some(progress) = progress else {
        return first_of_boot(id.batch);
    };
    match id.boot.cmp(&progress.boot) {
        Ordering::Less => Admission::Refuse(SubBatchOutcome::StaleBoot),
        Ordering::Greater => first_of_boot(id.batch),
        Ordering::Equal => {
            let expected = progress.last.next();
            if id.batch <= progress.last {
                if id.batch >= progress.floor {
                    Admission::Stored
                } else {
                    Admission::Refuse(SubBatchOutcome::ExecutedForgotten)
                }
            } else if id.batch == expected {
                Admission::Execute
            } else {
                Admission::Refuse(SubBatchOutcome::Gap { expected })
            }
        }
    }
}

/// The progress after the execution of `id`, whose node still waits for the answers from `floor`
/// on.
///
/// The floor never goes back, and never passes the batch itself: its own answer is kept until the
/// next one is executed.
pub(super) fn advance(
    progress: Option<&NodeProgress>,
    id: SubBatchId,
    floor: BatchNumber,
) -> NodeProgress {
    let floor_before = progress
        .filter(|progress| progress.boot == id.boot)
        .map_or(BatchNumber::FIRST, |progress| progress.floor);
    NodeProgress {
        boot: id.boot,
        last: id.batch,
        floor: floor.clamp(floor_before, id.batch),
    }
}

/// Writes progress and replies of `id`, and deletes the replies that nobody will ask for.
pub(super) fn record(
    before: Option<&NodeProgress>,
    id: SubBatchId,
    after: &NodeProgress,
    replies: Bytes,
    batch: &mut IndexedBatch,
) {
    if let Some(before) = before {
        let dropped_until = if before.boot == after.boot {
            after.floor
        } else {
            before.last.next()
        };
        for number in before.floor.get()..dropped_until.get() {
            let dropped = SubBatchId {
                node: id.node,
                boot: before.boot,
                batch: BatchNumber::new(number),
            };
            batch.delete(StateKey::SubBatchResult(dropped).encode());
        }
    }
    batch.put(StateKey::SubBatchResult(id).encode(), replies);
    batch.put(
        StateKey::NodeProgress { node: id.node }.encode(),
        after.encode(),
    );
}
