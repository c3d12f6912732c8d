//! Where the proposer, the applier and reads from the disk leave what a connection waits for.
//!
//! The connection's task is the only reader. Letters are as many as the connection has requests in
//! flight, which its own limits bound.

use std::sync::{Mutex, PoisonError};

use bytes::BytesMut;
use kelp_raft::{StateError, StateView};
use kelp_wire::Status;
use tokio::sync::Notify;

use crate::proposer::Waiter;
use crate::proposer::outbox::WriteOutcome;

/// One message for a connection.
pub(crate) enum Letter {
    /// The write behind `token` has an outcome.
    Written { token: u32, outcome: WriteOutcome },
    /// The read behind `token` may be served from `view`.
    View { token: u32, view: StateView },
    /// The write that the read behind `token` was to follow was not executed.
    RideLost { token: u32 },
    /// The read behind `token` has been to the disk.
    Served {
        token: u32,
        result: Result<ServedRead, StateError>,
    },
}

/// The reply of a read that went to the disk.
pub(crate) struct ServedRead {
    pub(crate) status: Status,
    /// The encoded reply.
    pub(crate) reply: BytesMut,
}

/// Letters not read yet.
#[derive(Default)]
pub(crate) struct Mailbox {
    letters: Mutex<Vec<Letter>>,
    arrived: Notify,
}

impl Mailbox {
    /// Resolves when there may be letters.
    pub(crate) async fn arrived(&self) {
        self.arrived.notified().await;
    }

    /// Takes all letters, in order of arrival, by swapping them with an empty vector.
    pub(crate) fn take(&self, letters: &mut Vec<Letter>) {
        debug_assert!(
            letters.is_empty(),
            "letters already taken must be handled first"
        );
        let mut waiting = self.letters.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut *waiting, letters);
    }

    pub(crate) fn post(&self, letter: Letter) {
        self.letters
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(letter);
        self.arrived.notify_one();
    }
}

impl Waiter for Mailbox {
    fn written(&self, token: u32, outcome: WriteOutcome) {
        self.post(Letter::Written { token, outcome });
    }

    fn view_ready(&self, token: u32, view: StateView) {
        self.post(Letter::View { token, view });
    }

    fn ride_lost(&self, token: u32) {
        self.post(Letter::RideLost { token });
    }
}
