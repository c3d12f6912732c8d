//! Drives the outbox: hands its sub-batches to whoever leads, this node or a peer, and brings the
//! answers back.
//!
//! There is one sender task per node. When the route changes (another leader, a broken link, a
//! refusal) all unanswered sub-batches are handed over again in order; the state machine drops what
//! it has seen. A node that has lost its leader ([`Leadership::is_lost`]) refuses what it has
//! handed to nobody, so that clients learn of it before their deadlines.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use kelp_raft::{BusError, GroupId, NodeId, PeerBus, PeerClass};
use kelp_seams::{Clock, Monotonic};

use super::outbox::{Attempt, AttemptFailure, Refusal};
use super::packer::{HandOverError, HandOverResult, Packer};
use super::{Proposer, forward};
use crate::leadership::{Leadership, Route};

/// Pause after a refusal or a broken link before the next hand-over. Elections take hundreds of
/// milliseconds, a new leader's first refusals only a few.
const RETRY_PAUSE: Duration = Duration::from_millis(10);

/// How often deadlines and the age of the last word from the leader are looked at.
const TICK: Duration = Duration::from_millis(20);

/// A forwarded sub-batch waits at most this long for its answer before it is handed over again. It
/// is far over any healthy commit, and a copy too many costs only its bytes.
const HAND_OVER_DEADLINE: Duration = Duration::from_secs(5);

type HandOver = BoxFuture<'static, (Attempt, HandOverResult)>;

/// What the sender needs from the rest of the node.
pub(crate) struct SenderParts {
    pub(crate) proposer: Arc<Proposer>,
    pub(crate) group: GroupId,
    pub(crate) bus: Arc<dyn PeerBus>,
    pub(crate) packer: Packer,
    pub(crate) leadership: Arc<Leadership>,
    pub(crate) clock: Arc<dyn Clock>,
}

struct Sender {
    parts: SenderParts,
    route: Option<Route>,
    retry_at: Option<Monotonic>,
    under_way: FuturesUnordered<HandOver>,
}

/// Runs until the node stops or is fenced.
pub(crate) async fn run(parts: SenderParts) {
    let route = parts.leadership.route();
    let mut sender = Sender {
        parts,
        route,
        retry_at: None,
        under_way: FuturesUnordered::new(),
    };
    let mut leader_changes = sender.parts.leadership.changes();
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        sender.hand_over_what_waits();
        tokio::select! {
            Some((attempt, result)) = sender.under_way.next() => {
                sender.take_result(&attempt, result);
            }
            () = sender.parts.proposer.woken() => {}
            Ok(()) = leader_changes.changed() => sender.follow_route(),
            _ = tick.tick() => sender.tick(),
        }
    }
}

impl Sender {
    fn hand_over_what_waits(&mut self) {
        let Some(route) = self.route.filter(|_| self.retry_at.is_none()) else {
            return;
        };
        loop {
            let Some(attempt) = self.parts.proposer.next_to_send() else {
                return;
            };
            let hand_over = self.hand_over(route, attempt);
            self.under_way.push(hand_over);
        }
    }

    fn hand_over(&self, route: Route, attempt: Attempt) -> HandOver {
        match route {
            Route::Here => {
                let answer = self
                    .parts
                    .packer
                    .hand_over(attempt.sub_batch.clone(), attempt.permit.clone());
                Box::pin(async move { (attempt, answer.await) })
            }
            Route::Peer(leader) => {
                let request = forward::encode_request(self.parts.group, &attempt.sub_batch);
                let reply = self.parts.bus.call_permitted(
                    leader,
                    PeerClass::Forward,
                    request,
                    HAND_OVER_DEADLINE,
                    attempt.permit.clone(),
                );
                Box::pin(async move { (attempt, answer_of(leader, reply.await)) })
            }
        }
    }

    fn take_result(&mut self, attempt: &Attempt, result: HandOverResult) {
        let failure = match result {
            Ok((outcome, index)) => {
                let answered = self.parts.proposer.lock().answered(attempt, outcome, index);
                match answered {
                    Ok(told) => Proposer::tell(told),
                    Err(_fenced) => self
                        .parts
                        .proposer
                        .fail("another process runs with this node's identity"),
                }
                return;
            }
            Err(HandOverError::NotLeader { .. } | HandOverError::Overloaded) => {
                AttemptFailure::NotExecuted
            }
            Err(HandOverError::Unknown) => AttemptFailure::Unknown,
            Err(HandOverError::Unreadable) => {
                self.parts.proposer.fail(
                    "the leader cannot read this node's writes; run the same version on all nodes",
                );
                AttemptFailure::Unknown
            }
        };
        self.parts.proposer.lock().attempt_failed(attempt, failure);
        self.retry_at = Some(self.parts.clock.monotonic() + RETRY_PAUSE);
        self.follow_route();
    }

    fn follow_route(&mut self) {
        self.parts.leadership.refresh();
        let route = self.parts.leadership.route();
        if route != self.route {
            tracing::debug!(?route, "writes take another route");
            self.route = route;
            self.retry_at = None;
            self.parts.proposer.lock().rewind();
        }
    }

    fn tick(&mut self) {
        let now = self.parts.clock.monotonic();
        if self.retry_at.is_some_and(|at| at <= now) {
            self.retry_at = None;
        }
        self.follow_route();
        let told = self.parts.proposer.lock().expire(now);
        Proposer::tell(told);
        if self.parts.leadership.is_lost() {
            self.parts.proposer.refuse_unsent(Refusal::NoLeader);
        }
        self.parts.proposer.count_unanswered();
    }
}

/// What a peer's reply, or its absence, says of a forwarded sub-batch.
fn answer_of(leader: NodeId, reply: Result<Bytes, BusError>) -> HandOverResult {
    match reply {
        Ok(reply) => forward::decode_reply(reply).unwrap_or_else(|error| {
            tracing::warn!(peer = %leader, %error, "answer to a forwarded sub-batch is malformed");
            Err(HandOverError::Unknown)
        }),
        Err(BusError::Unreachable(_)) => Err(HandOverError::NotLeader { leader: None }),
        Err(_) => Err(HandOverError::Unknown),
    }
}
