//! Tells the cluster which data directory this node runs on.
//!
//! The state keeps the first directory of each node, and peers refuse a node with another one. The
//! announcement is a command like any other, so a directory counts as known once a majority has it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kelp_raft::{DatabaseId, NodeId, Operation, ReplyStatus, StateReader, StateView};
use kelp_seams::Clock;
use tokio::sync::oneshot;

use super::outbox::{ConnectionOrder, WriteOutcome};
use super::{Proposer, Ticket, Waiter};
use crate::peer::emptied_text;

/// How long one announcement waits for a leader and a majority before it is repeated.
const DEADLINE: Duration = Duration::from_secs(30);

/// Pause before an announcement that failed is repeated: there is no leader, and the next one will
/// not come sooner.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// Announces `directory` unless the state knows it already, and fails the proposer if `node` had
/// another one.
pub(crate) async fn run(
    proposer: Arc<Proposer>,
    state: StateReader,
    clock: Arc<dyn Clock>,
    node: NodeId,
    directory: DatabaseId,
) {
    if state.view().directory_of(node).ok().flatten() == Some(directory) {
        return;
    }
    let command = Operation::Announce { directory }.command(0);
    loop {
        let (sender, told) = oneshot::channel();
        let ticket = Ticket {
            waiter: Arc::new(Announcer {
                told: Mutex::new(Some(sender)),
            }),
            token: 0,
        };
        let mut order = ConnectionOrder::default();
        let deadline = clock.monotonic() + DEADLINE;
        let queued = proposer.write(&mut order, deadline, ticket, |out| command.encode_into(out));
        let outcome = match queued {
            Ok(()) => told.await.ok(),
            Err(_) => None,
        };
        match outcome {
            Some(WriteOutcome::Done { reply, .. }) if reply.status == ReplyStatus::Forbidden => {
                proposer.fail(emptied_text(node));
                return;
            }
            Some(WriteOutcome::Done { .. } | WriteOutcome::Executed) => return,
            Some(WriteOutcome::NotExecuted(_) | WriteOutcome::Unknown) | None => {
                tokio::time::sleep(RETRY_PAUSE).await;
            }
        }
    }
}

/// Waits for the outcome of one announcement.
struct Announcer {
    told: Mutex<Option<oneshot::Sender<WriteOutcome>>>,
}

impl Waiter for Announcer {
    fn written(&self, _token: u32, outcome: WriteOutcome) {
        let sender = self.told.lock().ok().and_then(|mut told| told.take());
        if let Some(sender) = sender {
            // The task ends only with the node.
            let _ = sender.send(outcome);
        }
    }

    fn view_ready(&self, _token: u32, _view: StateView) {}

    fn ride_lost(&self, _token: u32) {}
}
