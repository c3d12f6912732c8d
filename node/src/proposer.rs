//! The way of a write through this node: queue, batch, hand over to the leader, tell the outcome.
//!
//! ```text
//! connections -> Proposer (outbox) -> sender -+-> packer (this node leads) -> Raft
//!                                             '-> peer link -> the leader's packer
//! ```
//!
//! [`Proposer`] is what the client ports see. It knows nothing of sockets: whoever waits is a
//! mailbox and a token. It is also the applier's observer, because reads that ride on a sub-batch
//! are served from the state right after it.

pub(crate) mod announce;
pub(crate) mod forward;
pub(crate) mod outbox;
pub(crate) mod packer;
pub(crate) mod sender;

use std::sync::{Arc, Mutex, MutexGuard};

use bytes::BytesMut;
use kelp_raft::{
    ApplyObserver, BatchNumber, Boot, LogIndex, NodeId, OwnSubBatch, StateView, SubBatchOutcome,
};
use kelp_seams::Monotonic;
use tokio::sync::{Notify, watch};

use crate::observe::OutboxMetrics;
use outbox::{Attempt, ConnectionOrder, Outbox, OutboxLimits, Refusal, Told, WriteOutcome};

/// Someone who waits for the outcome of a write or for the view of a read.
pub(crate) trait Waiter: Send + Sync + 'static {
    /// The write behind `token` has this outcome.
    fn written(&self, token: u32, outcome: WriteOutcome);
    /// The read behind `token` is to be served from this view.
    fn view_ready(&self, token: u32, view: StateView);
    /// The read behind `token` lost its sub-batch: the write before it was not executed, or this
    /// node never had the state right after it.
    fn ride_lost(&self, token: u32);
}

/// A waiter and its name for what it waits for.
#[derive(Clone)]
pub(crate) struct Ticket {
    pub(crate) waiter: Arc<dyn Waiter>,
    pub(crate) token: u32,
}

/// Handle to this node's writes; shared by all connections.
pub(crate) struct Proposer {
    boot: Boot,
    outbox: Mutex<Outbox<Ticket, Ticket>>,
    metrics: Arc<OutboxMetrics>,
    wake: Notify,
    /// Why no write of this node can execute any more.
    failure: watch::Sender<Option<String>>,
}

impl Proposer {
    /// A proposer of a process that has just raised its boot.
    pub(crate) fn new(node: NodeId, boot: Boot, limits: OutboxLimits) -> Self {
        Self {
            boot,
            outbox: Mutex::new(Outbox::new(node, boot, limits)),
            metrics: Arc::default(),
            wake: Notify::new(),
            failure: watch::Sender::new(None),
        }
    }

    /// Queues one command, which `encode` appends to the buffer.
    ///
    /// # Errors
    /// The window is full; the command is surely not executed.
    pub(crate) fn write(
        &self,
        order: &mut ConnectionOrder,
        deadline: Monotonic,
        ticket: Ticket,
        encode: impl FnOnce(&mut BytesMut),
    ) -> Result<(), Refusal> {
        let pushed = self.lock().push(order, deadline, ticket, encode);
        if pushed.is_err() {
            return Err(Refusal::Overloaded);
        }
        self.wake.notify_one();
        Ok(())
    }

    /// Lets a read ride on its connection's last write; false when it must ask the quorum instead.
    pub(crate) fn ride(&self, order: &mut ConnectionOrder, ticket: Ticket) -> bool {
        self.lock().ride(order, ticket).is_ok()
    }

    /// What is under way, for the metrics.
    pub(crate) fn metrics(&self) -> Arc<OutboxMetrics> {
        Arc::clone(&self.metrics)
    }

    /// Resolves when no write of this node can execute any more, with the reason.
    pub(crate) async fn failed(&self) -> String {
        let mut failure = self.failure.subscribe();
        match failure.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone().unwrap_or_default(),
            Err(_) => std::future::pending().await,
        }
    }

    /// Refuses everything that was handed to nobody.
    pub(crate) fn refuse_unsent(&self, refusal: Refusal) {
        let (told, riders) = self.lock().refuse_unsent(refusal);
        Self::tell(told);
        for rider in riders {
            rider.waiter.ride_lost(rider.token);
        }
    }

    /// The next sub-batch to hand over, counted.
    fn next_to_send(&self) -> Option<Attempt> {
        let mut outbox = self.lock();
        let attempt = outbox.next_to_send();
        self.metrics.set_unanswered(outbox.unanswered_count());
        drop(outbox);
        if attempt.as_ref().is_some_and(|attempt| attempt.is_repeated) {
            self.metrics.count_sent_again(1);
        }
        attempt
    }

    /// Brings the gauge up to date while nothing is handed over.
    fn count_unanswered(&self) {
        let outbox = self.lock();
        self.metrics.set_unanswered(outbox.unanswered_count());
    }

    fn lock(&self) -> MutexGuard<'_, Outbox<Ticket, Ticket>> {
        self.outbox.lock().expect(
            "a panic inside the outbox leaves writes in doubt, so whoever comes next ends too",
        )
    }

    fn tell(told: Told<Ticket>) {
        for (ticket, outcome) in told {
            ticket.waiter.written(ticket.token, outcome);
        }
    }

    async fn woken(&self) {
        self.wake.notified().await;
    }

    fn fail(&self, reason: impl Into<String>) {
        self.failure.send_replace(Some(reason.into()));
    }
}

impl ApplyObserver for Proposer {
    fn applied(&self, _index: LogIndex, own: &[OwnSubBatch<'_>]) {
        for sub_batch in own.iter().filter(|sub_batch| sub_batch.boot == self.boot) {
            if !matches!(sub_batch.outcome, SubBatchOutcome::Executed(_)) {
                continue;
            }
            let riders = self.lock().applied(sub_batch.batch);
            for rider in riders {
                rider.waiter.view_ready(rider.token, sub_batch.view.clone());
            }
        }
    }

    fn installed(&self, _index: LogIndex, own_last: Option<(Boot, BatchNumber)>) {
        let Some((_, last)) = own_last.filter(|(boot, _)| *boot == self.boot) else {
            return;
        };
        let riders = self.lock().skipped(last);
        for rider in riders {
            rider.waiter.ride_lost(rider.token);
        }
    }
}
