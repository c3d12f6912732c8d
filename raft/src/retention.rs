//! How much of the log is kept, and when the state is to be flushed so that less must be.
//!
//! openraft would purge by counting entries; here bytes count, and the transfers that run. After
//! each flush openraft is told to take note of a snapshot, which costs nothing, since the flushed
//! state is one; then it may discard the log before the first entry that somebody needs:
//!
//! ```text
//! purged | free to go ......... | kept for transfers | newest bytes, kept | end of the log
//!                     flushed somewhere here -- never beyond it
//! ```

use std::sync::Arc;
use std::time::Duration;

use kelp_storage::{Keyspace, Log};
use openraft::async_runtime::WatchReceiver;
use tokio::sync::{Notify, watch};

use crate::applier::{Progress, Unflushed};
use crate::model::LogIndex;
use crate::snapshot::{self, Shipping};
use crate::state_machine::OpenRaft;

/// How much of the log a replica keeps beyond what it needs itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogRetention {
    /// The newest bytes of the log that stay in any case; default 128 MiB. A follower that was away
    /// for less is caught up by entries, which is cheaper than files: seconds of full load, and
    /// minutes of a usual one.
    pub kept_bytes: u64,
    /// The most bytes that stay for the sake of running snapshot transfers; default 4 GiB. A
    /// transfer that needs more is in vain and starts anew, but the disk does not fill.
    pub held_bytes_max: u64,
    /// Bytes of the log applied and not flushed from which on a flush is asked for; default
    /// 64 MiB. A restart applies as much again, which takes about a second.
    pub flush_bytes: u64,
}

impl Default for LogRetention {
    fn default() -> Self {
        Self {
            kept_bytes: 128 << 20,
            held_bytes_max: 4 << 30,
            flush_bytes: 64 << 20,
        }
    }
}

/// What a decision rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogNeeds {
    /// The last entry of the log that was discarded.
    pub(crate) purged: Option<LogIndex>,
    /// The last entry that the flushed state covers.
    pub(crate) flushed: Option<LogIndex>,
    /// The first of the newest entries that stay in any case; none in an empty log.
    pub(crate) kept_from: Option<LogIndex>,
    /// The first entry that a running transfer needs.
    pub(crate) held_from: Option<LogIndex>,
    /// The first of the newest entries that transfers may hold; none in an empty log.
    pub(crate) holdable_from: Option<LogIndex>,
}

/// The last entry that may be discarded; `None` when nothing more may.
pub(crate) fn purge_through(needs: LogNeeds) -> Option<LogIndex> {
    let held_from = needs
        .held_from
        .max(needs.holdable_from.filter(|_| needs.held_from.is_some()));
    let mut keep_from = needs.flushed?.next();
    for from in [needs.kept_from, held_from].into_iter().flatten() {
        keep_from = keep_from.min(from);
    }
    let through = keep_from.previous()?;
    (Some(through) > needs.purged).then_some(through)
}

/// Follows the flushes of one replica.
pub(crate) struct Retention {
    pub(crate) raft: OpenRaft,
    pub(crate) log: Log,
    pub(crate) keyspace: Keyspace,
    pub(crate) shipping: Arc<Shipping>,
    pub(crate) unflushed: Arc<Unflushed>,
    pub(crate) limits: LogRetention,
    pub(crate) progress: watch::Receiver<Progress>,
    /// Ends with the core.
    pub(crate) epoch: watch::Receiver<u64>,
}

/// How often to look without a reason: what a transfer held is free a while after its end, also
/// when nothing is written any more.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// How long openraft may take to note a snapshot that is there already.
const NOTED_WITHIN: Duration = Duration::from_secs(10);

impl Retention {
    /// Runs until the core ends.
    pub(crate) async fn run(mut self) {
        let flushed = Arc::new(Notify::new());
        let told = Arc::clone(&flushed);
        self.keyspace
            .on_flushed(Arc::new(move || told.notify_one()));
        loop {
            if let Err(error) = self.follow().await {
                tracing::warn!(%error, "the log is not purged");
            }
            let stopped = async { while self.epoch.changed().await.is_ok() {} };
            tokio::select! {
                () = stopped => return,
                () = flushed.notified() => {}
                () = self.shipping.ended.notified() => {}
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
        }
    }

    /// Lets openraft know what is flushed, and discards what nobody needs.
    async fn follow(&self) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let pinned = snapshot::pinned(&*self.shipping.executor, &self.keyspace).await?;
        let Some(flushed) = pinned.and_then(|pinned| pinned.meta.last_log_id) else {
            return Ok(());
        };
        let index = LogIndex::new(flushed.index);
        let applied = self.progress.borrow().applied;
        let applied_end = applied.map_or(index, LogIndex::next);
        let left = self.log.bytes_in(index.next()..applied_end);
        self.unflushed.flushed(left);
        let mut noted = self.raft.metrics();
        if noted.borrow_watched().snapshot < Some(flushed) {
            self.raft.trigger().snapshot().await?;
            let reached = async {
                while noted.borrow_watched().snapshot < Some(flushed) {
                    noted.changed().await?;
                }
                Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
            };
            tokio::time::timeout(NOTED_WITHIN, reached).await??;
        }
        if let Some(through) = purge_through(self.needs(index)) {
            self.shipping.discarded(through);
            self.raft.trigger().purge_log(through.get()).await?;
        }
        Ok(())
    }

    fn needs(&self, flushed: LogIndex) -> LogNeeds {
        LogNeeds {
            purged: self.log.purged().map(|purged| purged.index),
            flushed: Some(flushed),
            kept_from: self.log.newest_from(self.limits.kept_bytes),
            held_from: self.shipping.holds_from(),
            holdable_from: self.log.newest_from(self.limits.held_bytes_max),
        }
    }
}

#[cfg(test)]
mod tests;
