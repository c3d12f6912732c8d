//! What callers and the driver of a connection share: one short lock over the frames to send and
//! the requests in flight, and the wake-ups that follow from it.
//!
//! Wakers are called after the lock is released. No lock is held across an await.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use kelp_wire::{Request, RequestId, Response, encode_request};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::in_flight::{InFlight, Owed, SlotIndex};
use super::reply::Reply;
use super::{CallError, CloseReason, ConnectionOptions};
use kelp_wire::Executed;

/// Id of pings. No slot has it: slots are at most 65,536.
pub(super) const PING_ID: RequestId = RequestId::new(u32::MAX);

/// Whether a request went in.
pub(super) enum Entry {
    Entered(SlotIndex),
    Full,
}

pub(super) struct Shared {
    state: Mutex<State>,
    room: Notify,
}

struct State {
    /// Frames that the driver has not taken yet.
    outgoing: BytesMut,
    /// Length of all frames ever put into `outgoing`.
    queued: u64,
    in_flight: InFlight,
    /// Wakes the driver; present while the driver sleeps and has not been woken.
    driver: Option<Waker>,
    /// No deadline in flight is earlier. May be too early, never too late.
    deadline_min: Option<Instant>,
    /// When the node last began to owe something after owing nothing.
    owes_since: Instant,
    /// Callers waiting for room.
    waiting_count: usize,
    closed: Option<CloseReason>,
}

/// What the driver needs to know to set its alarm.
pub(super) struct Watch {
    pub(super) deadline_min: Option<Instant>,
    /// Since when the node owes something, if it does.
    pub(super) owes_since: Option<Instant>,
}

impl Shared {
    pub(super) fn new(options: &ConnectionOptions) -> Self {
        Self {
            state: Mutex::new(State {
                outgoing: BytesMut::new(),
                queued: 0,
                in_flight: InFlight::new(options.requests_max, options.request_bytes_max),
                driver: None,
                deadline_min: None,
                owes_since: Instant::now(),
                waiting_count: 0,
                closed: None,
            }),
            room: Notify::new(),
        }
    }

    /// A panic while the lock is held leaves no state half changed that a later holder could
    /// misread as sound for long: the driver of a poisoned connection ends with its own panic.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn closed(&self) -> Option<CloseReason> {
        self.lock().closed.clone()
    }

    /// Encodes a request and takes a slot for it, if there is room.
    pub(super) fn enter(
        &self,
        request: &Request<'_>,
        deadline: Instant,
    ) -> Result<Entry, CallError> {
        let mut guard = self.lock();
        let state = &mut *guard;
        if let Some(reason) = &state.closed {
            return Err(CallError::Lost {
                reason: reason.clone(),
                executed: Executed::No,
            });
        }
        if !state.in_flight.has_room() {
            return Ok(Entry::Full);
        }
        let id = state.in_flight.next().request_id();
        let before = state.outgoing.len();
        encode_request(&mut state.outgoing, id, request).map_err(CallError::Invalid)?;
        let frame_bytes = state.outgoing.len() - before;
        state.queued += u64::try_from(frame_bytes).expect("a frame is at most a few MiB");
        if !state.in_flight.owes() {
            state.owes_since = Instant::now();
        }
        let slot = state.in_flight.insert(Owed {
            opcode: request.opcode(),
            is_write: request.is_write(),
            deadline,
            frame_bytes,
            frame_end: state.queued,
        });
        let earliest = state.deadline_min.get_or_insert(deadline);
        *earliest = deadline.min(*earliest);
        let driver = state.driver.take();
        drop(guard);
        if let Some(driver) = driver {
            driver.wake();
        }
        Ok(Entry::Entered(slot))
    }

    pub(super) fn poll_reply(
        &self,
        slot: SlotIndex,
        context: &mut Context<'_>,
    ) -> Poll<Result<Reply, CallError>> {
        let mut state = self.lock();
        let result = state.in_flight.poll(slot, context);
        if result.is_ready() {
            self.announce_room(state);
        }
        result
    }

    pub(super) fn abandon(&self, slot: SlotIndex) {
        let mut state = self.lock();
        state.in_flight.abandon(slot);
        self.announce_room(state);
    }

    // Room: callers beyond the limits wait here, first come first served.

    pub(super) fn room(&self) -> &Notify {
        &self.room
    }

    /// Counts the caller among those that wait, until the guard is dropped.
    pub(super) fn wait_for_room(self: &Arc<Self>) -> WaitingForRoom {
        self.lock().waiting_count += 1;
        WaitingForRoom {
            shared: Arc::clone(self),
        }
    }

    /// A caller that waited went in: there may be room for the next one too.
    pub(super) fn pass_room_on(&self) {
        self.announce_room(self.lock());
    }

    fn announce_room(&self, state: MutexGuard<'_, State>) {
        let wanted = state.waiting_count > 0 && state.in_flight.has_room();
        drop(state);
        if wanted {
            self.room.notify_one();
        }
    }

    // What follows is called by the driver only.

    /// Whether frames wait to be taken.
    pub(super) fn has_output(&self) -> bool {
        !self.lock().outgoing.is_empty()
    }

    /// Swaps the empty `writing` for the frames that wait. When there are none, remembers the
    /// driver's waker for the next caller and returns false.
    pub(super) fn take_output(&self, writing: &mut BytesMut, waker: &Waker) -> bool {
        let mut state = self.lock();
        if state.outgoing.is_empty() {
            state.driver = Some(waker.clone());
            return false;
        }
        std::mem::swap(&mut state.outgoing, writing);
        true
    }

    /// Lets the next caller wake the driver: it may bring an earlier deadline.
    pub(super) fn listen(&self, waker: &Waker) {
        self.lock().driver = Some(waker.clone());
    }

    pub(super) fn watch(&self) -> Watch {
        let state = self.lock();
        Watch {
            deadline_min: state.deadline_min,
            owes_since: state.in_flight.owes().then_some(state.owes_since),
        }
    }

    /// Sends an empty echo whose reply is only a sign of life.
    pub(super) fn ping(&self) {
        let mut state = self.lock();
        let before = state.outgoing.len();
        encode_request(&mut state.outgoing, PING_ID, &Request::Echo { value: &[] })
            .expect("an empty echo is within all limits");
        let frame_bytes = state.outgoing.len() - before;
        state.queued += u64::try_from(frame_bytes).expect("an empty echo is short");
    }

    /// Takes in the frames that `next` yields, then wakes their callers.
    pub(super) fn accept_all(
        &self,
        wakers: &mut Vec<Waker>,
        deliver: impl FnOnce(&mut Inbox<'_>) -> Result<(), CloseReason>,
    ) -> Result<(), CloseReason> {
        let mut state = self.lock();
        let result = deliver(&mut Inbox {
            in_flight: &mut state.in_flight,
            wakers,
        });
        self.announce_room(state);
        wake_all(wakers);
        result
    }

    /// Tells callers whose deadline has passed.
    ///
    /// # Errors
    /// The connection must end: a request that timed out still waits to be written.
    pub(super) fn expire(
        &self,
        now: Instant,
        handed: u64,
        wakers: &mut Vec<Waker>,
    ) -> Result<(), CloseReason> {
        let mut state = self.lock();
        let expiry = state.in_flight.expire(now, handed, wakers);
        state.deadline_min = expiry.next;
        drop(state);
        wake_all(wakers);
        if expiry.unsent {
            return Err(CloseReason::Stalled);
        }
        Ok(())
    }

    /// Ends the connection: fails everything in flight and everybody who waits. The first reason
    /// counts. `handed` is how many bytes went to the socket.
    pub(super) fn close(&self, reason: &CloseReason, handed: u64) {
        let mut wakers = Vec::new();
        let mut state = self.lock();
        state.closed.get_or_insert_with(|| reason.clone());
        state.in_flight.fail_all(reason, handed, &mut wakers);
        state.outgoing = BytesMut::new();
        wakers.extend(state.driver.take());
        drop(state);
        wake_all(&mut wakers);
        self.room.notify_waiters();
    }
}

fn wake_all(wakers: &mut Vec<Waker>) {
    for waker in wakers.drain(..) {
        waker.wake();
    }
}

/// Where the driver puts replies while it holds the lock.
pub(super) struct Inbox<'a> {
    in_flight: &'a mut InFlight,
    wakers: &'a mut Vec<Waker>,
}

impl Inbox<'_> {
    /// Takes in one frame; `own` makes its value the caller's.
    pub(super) fn accept(
        &mut self,
        response: &Response<'_>,
        own: impl FnOnce(&[u8]) -> Bytes,
    ) -> Result<(), CloseReason> {
        self.in_flight.accept(response, own, self.wakers)
    }
}

/// Keeps a caller counted among those that wait for room.
pub(super) struct WaitingForRoom {
    shared: Arc<Shared>,
}

impl Drop for WaitingForRoom {
    fn drop(&mut self) {
        self.shared.lock().waiting_count -= 1;
    }
}
