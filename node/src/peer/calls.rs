//! The calls of one connection: those that wait to be sent and those that wait for their reply.

use std::collections::VecDeque;

use bytes::Bytes;
use kelp_raft::{BusError, SendPermit};
use tokio::sync::oneshot;

/// Calls that may be open on one connection. Requests carry batches, so a full ring means that the
/// peer is stuck.
const CALLS_MAX: usize = 16 * 1024;

type Reply = Result<Bytes, BusError>;

/// A ring of calls with consecutive ids.
///
/// ```text
///   first ........ sent ........ end
///   | awaiting reply | to be sent |
/// ```
///
/// Invariants: `first <= sent <= end`; a request is held exactly while its call is unsent;
/// `unsent_bytes` is the sum of the requests held; the front of the ring is never an empty slot.
pub(super) struct Calls {
    first: u64,
    sent: u64,
    ring: VecDeque<Option<Call>>,
    unsent_bytes: usize,
    unsent_bytes_max: usize,
}

struct Call {
    sender: oneshot::Sender<Reply>,
    request: Option<Bytes>,
    permit: SendPermit,
}

impl Calls {
    pub(super) fn new(unsent_bytes_max: usize) -> Self {
        Self {
            // Id 0 is that of greetings.
            first: 1,
            sent: 1,
            ring: VecDeque::new(),
            unsent_bytes: 0,
            unsent_bytes_max,
        }
    }

    /// Adds a call at the end; refused when the ring or the bytes are at their limit.
    pub(super) fn enqueue(
        &mut self,
        request: Bytes,
        permit: SendPermit,
    ) -> Result<(u64, oneshot::Receiver<Reply>), BusError> {
        if self.ring.len() >= CALLS_MAX {
            return Err(BusError::Unreachable(format!("{CALLS_MAX} calls are open")));
        }
        let bytes = self.unsent_bytes + request.len();
        // One request over the limit is let into an empty queue, else it could never be sent.
        if bytes > self.unsent_bytes_max && self.unsent_bytes > 0 {
            let queued = self.unsent_bytes;
            return Err(BusError::Unreachable(format!("{queued} bytes are queued")));
        }
        self.unsent_bytes = bytes;
        let id = self.end();
        let (sender, receiver) = oneshot::channel();
        let request = Some(request);
        self.ring.push_back(Some(Call {
            sender,
            request,
            permit,
        }));
        Ok((id, receiver))
    }

    /// Takes the next request to send; from here on its call counts as sent. Calls that were
    /// withdrawn are failed instead.
    pub(super) fn take_unsent(&mut self) -> Option<(u64, Bytes)> {
        while self.sent < self.end() {
            let id = self.sent;
            self.sent += 1;
            let Some(call) = self.slot(id).and_then(Option::as_mut) else {
                continue;
            };
            let may_send = call.permit.claim();
            let Some(request) = call.request.take() else {
                continue;
            };
            self.unsent_bytes -= request.len();
            if may_send {
                return Some((id, request));
            }
            if let Some(call) = self.remove(id) {
                let error = BusError::Unreachable("withdrawn before it was sent".to_owned());
                drop(call.sender.send(Err(error)));
            }
        }
        None
    }

    pub(super) fn has_unsent(&self) -> bool {
        self.sent < self.end()
    }

    /// Completes the call `id` with a reply. An id that nobody waits for is ignored: its deadline
    /// passed.
    ///
    /// Returns whether such an id was ever sent; if not, the peer makes up replies.
    pub(super) fn complete(&mut self, id: u64, reply: Bytes) -> bool {
        if let Some(call) = self.remove(id) {
            // The caller may have given up; then nobody needs the reply.
            drop(call.sender.send(Ok(reply)));
        }
        id < self.sent
    }

    /// Removes the call `id`, whose deadline has passed, and tells what became of it.
    pub(super) fn expire(&mut self, id: u64) -> BusError {
        match self.remove(id).and_then(|call| call.request) {
            Some(request) => {
                self.unsent_bytes -= request.len();
                BusError::Unreachable("not connected within the deadline".to_owned())
            }
            None => BusError::Timeout,
        }
    }

    /// Fails every call, since the connection is gone: sent ones are lost, the others were surely
    /// not delivered.
    pub(super) fn fail_all(&mut self, reason: &str) {
        self.first = self.end();
        self.sent = self.first;
        self.unsent_bytes = 0;
        for call in self.ring.drain(..).flatten() {
            let error = match call.request {
                Some(_) => BusError::Unreachable(reason.to_owned()),
                None => BusError::Lost(reason.to_owned()),
            };
            drop(call.sender.send(Err(error)));
        }
    }

    fn end(&self) -> u64 {
        self.first + self.ring.len() as u64
    }

    fn slot(&mut self, id: u64) -> Option<&mut Option<Call>> {
        let index = usize::try_from(id.checked_sub(self.first)?).ok()?;
        self.ring.get_mut(index)
    }

    fn remove(&mut self, id: u64) -> Option<Call> {
        let call = self.slot(id)?.take();
        while matches!(self.ring.front(), Some(None)) {
            self.ring.pop_front();
            self.first += 1;
        }
        self.sent = self.sent.max(self.first);
        call
    }
}
