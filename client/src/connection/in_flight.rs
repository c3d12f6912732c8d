//! The requests of one connection that the node has not answered yet: a table of slots.
//!
//! Pure bookkeeping: no lock, no socket. A slot has two sides that end independently: the node
//! owes a reply or not, and a caller waits for it or not. It is free again when both have ended.
//!
//! ```text
//!                 caller leaves                       reply, or the connection ends
//! owed, awaited ───────────────▶ owed, abandoned ───────────────────────────▶ free
//!       │ deadline                      ▲ caller takes the timeout              ▲
//!       ├──────────▶ owed, timed out ───┘                                       │
//!       └─ reply ──▶ answered ───────────────── caller takes it or leaves ──────┘
//! ```

#[cfg(test)]
mod tests;

use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use kelp_wire::{Executed, Opcode, RequestId, Response};
use tokio::time::Instant;

use super::reply::{Parts, Reply};
use super::{CallError, CloseReason};

/// A reply in several frames may grow to this: a scan page is at most 4 MiB beyond one entry.
const REPLY_BYTES_MAX: usize = 32 * 1024 * 1024;

/// More slots than this would only be memory: the node's own window is far smaller.
const SLOTS_MAX: usize = 65_536;

/// Position of a slot in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlotIndex(usize);

impl SlotIndex {
    /// The request id of the slot. Never 0, which error frames use when they know no request.
    pub(super) fn request_id(self) -> RequestId {
        RequestId::new(u32::try_from(self.0 + 1).expect("slots are at most 65,536"))
    }

    fn of(id: RequestId) -> Option<Self> {
        let index = usize::try_from(id.get()).ok()?.checked_sub(1)?;
        Some(Self(index))
    }
}

/// A request that the node owes a reply to.
#[derive(Debug)]
pub(super) struct Owed {
    pub(super) opcode: Opcode,
    pub(super) is_write: bool,
    pub(super) deadline: Instant,
    pub(super) frame_bytes: usize,
    /// Where its frame ends in the stream of all bytes that this connection sends.
    pub(super) frame_end: u64,
}

impl Owed {
    /// Whether the request may have taken effect when `handed` bytes went to the socket and no
    /// more will.
    fn executed(&self, handed: u64) -> Executed {
        if self.is_write && self.frame_end <= handed {
            Executed::Unknown
        } else {
            Executed::No
        }
    }
}

#[derive(Debug, Default)]
enum Caller {
    #[default]
    Left,
    Awaits(Option<Waker>),
    HasResult(Result<Reply, CallError>),
}

#[derive(Debug, Default)]
struct Slot {
    owed: Option<Owed>,
    caller: Caller,
    parts: Option<Box<Parts>>,
}

/// All slots of a connection.
///
/// Invariants: `owed_count` slots have an `owed`; `owed_bytes` is the sum of their frames; `free`
/// holds exactly the slots without `owed` and without caller.
#[derive(Debug)]
pub(super) struct InFlight {
    slots: Vec<Slot>,
    free: Vec<SlotIndex>,
    owed_count: usize,
    owed_bytes: usize,
    slots_max: usize,
    owed_bytes_max: usize,
}

impl InFlight {
    pub(super) fn new(requests_max: usize, request_bytes_max: usize) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            owed_count: 0,
            owed_bytes: 0,
            slots_max: requests_max.clamp(1, SLOTS_MAX),
            owed_bytes_max: request_bytes_max,
        }
    }

    /// Whether another request may be sent. The byte limit may be passed by the last one.
    pub(super) fn has_room(&self) -> bool {
        let slots_used = self.slots.len() - self.free.len();
        slots_used < self.slots_max
            && (self.owed_count == 0 || self.owed_bytes < self.owed_bytes_max)
    }

    /// The slot that [`InFlight::insert`] will fill next.
    pub(super) fn next(&self) -> SlotIndex {
        self.free
            .last()
            .copied()
            .unwrap_or(SlotIndex(self.slots.len()))
    }

    pub(super) fn owes(&self) -> bool {
        self.owed_count > 0
    }

    pub(super) fn insert(&mut self, owed: Owed) -> SlotIndex {
        self.owed_count += 1;
        self.owed_bytes += owed.frame_bytes;
        let slot = Slot {
            owed: Some(owed),
            caller: Caller::Awaits(None),
            parts: None,
        };
        if let Some(index) = self.free.pop() {
            self.slots[index.0] = slot;
            index
        } else {
            self.slots.push(slot);
            SlotIndex(self.slots.len() - 1)
        }
    }

    /// Hands the result to the caller, or remembers whom to wake.
    pub(super) fn poll(
        &mut self,
        index: SlotIndex,
        context: &mut Context<'_>,
    ) -> Poll<Result<Reply, CallError>> {
        let slot = &mut self.slots[index.0];
        match std::mem::take(&mut slot.caller) {
            Caller::HasResult(result) => {
                self.release_if_done(index);
                Poll::Ready(result)
            }
            Caller::Awaits(Some(waker)) if waker.will_wake(context.waker()) => {
                slot.caller = Caller::Awaits(Some(waker));
                Poll::Pending
            }
            Caller::Awaits(_) | Caller::Left => {
                slot.caller = Caller::Awaits(Some(context.waker().clone()));
                Poll::Pending
            }
        }
    }

    /// The caller of the slot no longer waits.
    pub(super) fn abandon(&mut self, index: SlotIndex) {
        self.slots[index.0].caller = Caller::Left;
        self.release_if_done(index);
    }

    fn release_if_done(&mut self, index: SlotIndex) {
        let slot = &self.slots[index.0];
        if slot.owed.is_none() && matches!(slot.caller, Caller::Left) {
            self.free.push(index);
        }
    }

    /// Takes in one frame of a reply. `own` makes the value of a whole reply the caller's.
    pub(super) fn accept(
        &mut self,
        response: &Response<'_>,
        own: impl FnOnce(&[u8]) -> Bytes,
        wakers: &mut Vec<Waker>,
    ) -> Result<(), CloseReason> {
        let (index, slot) = SlotIndex::of(response.id)
            .and_then(|index| Some((index, self.slots.get_mut(index.0)?)))
            .ok_or(CloseReason::UnexpectedReply)?;
        let owed = slot.owed.as_ref().ok_or(CloseReason::UnexpectedReply)?;
        let fits = response.opcode == owed.opcode.to_byte()
            || (response.opcode == Opcode::UNKNOWN && response.status.is_error());
        if !fits {
            return Err(CloseReason::UnexpectedReply);
        }
        if response.more {
            let parts = slot.parts.get_or_insert_default();
            parts.push(response.value);
            return if parts.bytes() > REPLY_BYTES_MAX {
                Err(CloseReason::UnexpectedReply)
            } else {
                Ok(())
            };
        }
        let value = match slot.parts.take() {
            Some(parts) => parts.join(response.value),
            None => own(response.value),
        };
        self.settle(index, Ok(Reply::new(response, value)), wakers);
        Ok(())
    }

    /// The node owes nothing for this slot any more.
    fn settle(
        &mut self,
        index: SlotIndex,
        result: Result<Reply, CallError>,
        wakers: &mut Vec<Waker>,
    ) {
        let slot = &mut self.slots[index.0];
        let owed = slot.owed.take().expect("only owed slots are settled");
        self.owed_count -= 1;
        self.owed_bytes -= owed.frame_bytes;
        slot.parts = None;
        give(&mut slot.caller, result, wakers);
        self.release_if_done(index);
    }

    /// Tells callers whose deadline has passed; the node still owes their replies.
    pub(super) fn expire(&mut self, now: Instant, handed: u64, wakers: &mut Vec<Waker>) -> Expiry {
        let mut expiry = Expiry::default();
        for slot in &mut self.slots {
            let (Some(owed), Caller::Awaits(_)) = (&slot.owed, &slot.caller) else {
                continue;
            };
            if owed.deadline <= now {
                expiry.unsent |= owed.frame_end > handed;
                let executed = owed.executed(handed);
                give(
                    &mut slot.caller,
                    Err(CallError::TimedOut { executed }),
                    wakers,
                );
            } else {
                let next = expiry.next.get_or_insert(owed.deadline);
                *next = owed.deadline.min(*next);
            }
        }
        expiry
    }

    /// The connection has ended after `handed` bytes: nobody will answer.
    pub(super) fn fail_all(&mut self, reason: &CloseReason, handed: u64, wakers: &mut Vec<Waker>) {
        for index in 0..self.slots.len() {
            let Some(owed) = &self.slots[index].owed else {
                continue;
            };
            let lost = CallError::Lost {
                reason: reason.clone(),
                executed: owed.executed(handed),
            };
            self.settle(SlotIndex(index), Err(lost), wakers);
        }
    }
}

/// What [`InFlight::expire`] found.
#[derive(Debug, Default)]
pub(super) struct Expiry {
    /// The earliest deadline that is still ahead.
    pub(super) next: Option<Instant>,
    /// A request timed out whose frame has not gone out whole. It was reported as not executed, so
    /// nothing more may be written on this connection.
    pub(super) unsent: bool,
}

fn give(caller: &mut Caller, result: Result<Reply, CallError>, wakers: &mut Vec<Waker>) {
    if let Caller::Awaits(waker) = caller {
        wakers.extend(waker.take());
        *caller = Caller::HasResult(result);
    }
}
