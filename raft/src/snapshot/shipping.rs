//! What runs between this node and others: transfers, their pace, and what they need of the log.
//!
//! A transfer takes long, and the log goes on meanwhile. The receiver will need every entry after
//! the snapshot, so the log is held from there while the transfer runs and a while longer. When a
//! transfer breaks off, the next one should go on with the same files, so for the same while the
//! snapshot that was being sent is preferred to a newer one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use kelp_seams::{Clock, Executor, Monotonic};
use kelp_storage::PinnedVersion;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{Image, Snapshot};
use crate::message::Meta;
use crate::model::LogIndex;

/// How long the end of a transfer is remembered, on both sides: many reconnections, or the time
/// that a follower takes to ask for the entries after its new state.
pub(crate) const REMEMBERED: Duration = Duration::from_mins(1);

/// Bytes of snapshots that a node sends per second, to all receivers together. Half of a gigabit
/// link, so that a transfer leaves as much to log entries and clients.
const BYTES_PER_SECOND_MAX: u64 = 64 << 20;

/// What was sent and received since the start, for the metrics.
#[derive(Debug, Default)]
pub(crate) struct SnapshotCounters {
    pub(crate) sent: AtomicU64,
    pub(crate) installed: AtomicU64,
    pub(crate) sent_bytes: AtomicU64,
    pub(crate) received_bytes: AtomicU64,
}

impl SnapshotCounters {
    pub(crate) fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Ordering::Relaxed);
    }
}

/// The outgoing transfers of a replica.
pub(crate) struct Shipping {
    pub(crate) executor: Arc<dyn Executor>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) counters: SnapshotCounters,
    state: Mutex<State>,
    /// Told when a transfer ends: more of the log may go.
    pub(crate) ended: Notify,
}

#[derive(Default)]
struct State {
    next: u64,
    transfers: Vec<Transfer>,
    /// The snapshot of the newest transfer.
    sent_last: Option<(Meta, PinnedVersion)>,
    /// When the next chunk may leave.
    free_at: Option<Instant>,
}

struct Transfer {
    number: u64,
    /// The first entry that the receiver needs of the log.
    needs_from: LogIndex,
    /// When it ended, and whether the receiver then had the snapshot.
    ended: Option<(Monotonic, bool)>,
}

impl Shipping {
    pub(crate) fn new(executor: Arc<dyn Executor>, clock: Arc<dyn Clock>) -> Self {
        Self {
            executor,
            clock,
            counters: SnapshotCounters::default(),
            state: Mutex::default(),
            ended: Notify::new(),
        }
    }

    /// Takes note of a transfer that begins, until the answer is dropped.
    pub(crate) fn start(self: &Arc<Self>, meta: &Meta, pinned: &PinnedVersion) -> Shipment {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        state.transfers.push(Transfer {
            number,
            needs_from: next_of(meta),
            ended: None,
        });
        state.sent_last = Some((meta.clone(), pinned.clone()));
        drop(state);
        Shipment {
            shipping: Arc::clone(self),
            number,
            done: false,
        }
    }

    /// The first entry that some receiver still needs of the log.
    pub(crate) fn holds_from(&self) -> Option<LogIndex> {
        let state = self.current();
        state.transfers.iter().map(|held| held.needs_from).min()
    }

    /// The snapshot to go on with, while one is being sent or broke off not long ago.
    pub(crate) fn preferred(&self) -> Option<Snapshot> {
        let state = self.current();
        let (meta, pinned) = state.sent_last.as_ref()?;
        Some(Snapshot {
            meta: meta.clone(),
            snapshot: Image::Pinned(pinned.clone()),
        })
    }

    /// The log goes through this entry: a snapshot whose next entry is gone leads nowhere, so none
    /// is sent for the sake of going on with it.
    pub(crate) fn discarded(&self, through: LogIndex) {
        let mut state = self.lock();
        let is_useless = |(meta, _): &(Meta, PinnedVersion)| next_of(meta) <= through;
        if state.sent_last.as_ref().is_some_and(is_useless) {
            state.sent_last = None;
        }
    }

    /// Waits until `bytes` more may leave.
    pub(crate) async fn paced(&self, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let cost = Duration::from_micros(bytes.saturating_mul(1_000_000) / BYTES_PER_SECOND_MAX);
        let turn = {
            let mut state = self.lock();
            let now = Instant::now();
            let turn = state.free_at.map_or(now, |free| free.max(now));
            state.free_at = Some(turn + cost);
            turn
        };
        tokio::time::sleep_until(turn).await;
    }

    /// The state without what is forgotten by now.
    fn current(&self) -> MutexGuard<'_, State> {
        let now = self.clock.monotonic();
        let mut state = self.lock();
        state.transfers.retain(|transfer| {
            transfer
                .ended
                .is_none_or(|(at, _)| now.saturating_duration_since(at) < REMEMBERED)
        });
        let unfinished = |transfer: &Transfer| !matches!(transfer.ended, Some((_, true)));
        if !state.transfers.iter().any(unfinished) {
            state.sent_last = None;
        }
        state
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .expect("nothing panics while it holds this lock")
    }
}

/// A transfer that runs; it ends when this is dropped.
pub(crate) struct Shipment {
    shipping: Arc<Shipping>,
    number: u64,
    done: bool,
}

impl Shipment {
    /// The receiver has the snapshot.
    pub(crate) fn finish(mut self) {
        self.done = true;
        SnapshotCounters::add(&self.shipping.counters.sent, 1);
    }
}

impl Drop for Shipment {
    fn drop(&mut self) {
        let end = (self.shipping.clock.monotonic(), self.done);
        let mut state = self.shipping.lock();
        let own = state
            .transfers
            .iter_mut()
            .find(|transfer| transfer.number == self.number);
        if let Some(own) = own {
            own.ended = Some(end);
        }
        drop(state);
        self.shipping.ended.notify_one();
    }
}

/// The entry after a snapshot.
fn next_of(meta: &Meta) -> LogIndex {
    let last = meta.last_log_id.map(|last| LogIndex::new(last.index));
    last.map_or(LogIndex::new(0), LogIndex::next)
}

#[cfg(test)]
mod tests;
