//! Linearizable reads: which position a read must wait for.
//!
//! A read is linearizable when it sees everything committed before it began. The leader learns
//! that position by asking a majority whether it still leads (ReadIndex); a follower asks the
//! leader. Both are *rounds*, and a round serves every read that arrived before it started:
//!
//! ```text
//! reads:   a b          c d e            f
//! rounds:      [ a b ]      [ c d e ]      [ f ]
//! ```
//!
//! A read that arrives while a round runs waits for the next one, since the running round may
//! already have fixed its position. There is no lease: an answer never depends on clocks.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use openraft::LinearizerOption;
use openraft::async_runtime::WatchReceiver;
use openraft::errors::{LinearizableReadError, RaftError as OpenraftError};
use tokio::sync::{oneshot, watch};

use crate::bus::{BusError, PeerClass};
use crate::error::ReadError;
use crate::links::{CallError, Links};
use crate::message::{self, RaftKind, ReadIndexReply};
use crate::model::{LogIndex, NodeId, Term};
use crate::state_machine::OpenRaft;
use crate::type_config::{LogId, node_of};

/// A position such that a read of a state that includes it is linearizable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReadPoint {
    /// Term of the leader that wrote the entry.
    pub term: Term,
    /// The entry that must be applied before the read.
    pub index: LogIndex,
}

/// What a round gave, shared by all who waited for it.
type RoundResult = Result<ReadPoint, ReadError>;

/// Runs the rounds of one replica.
pub(crate) struct ReadIndex {
    raft: OpenRaft,
    links: Arc<Links>,
    /// Rounds that ask a majority; used by reads of this node and of its followers.
    local: Rounds,
    /// Rounds that ask the leader.
    remote: Rounds,
    /// Whether a round panicked.
    broken: watch::Sender<bool>,
}

#[derive(Default)]
struct Rounds {
    state: Mutex<RoundsState>,
}

#[derive(Default)]
struct RoundsState {
    running: bool,
    waiting: Vec<oneshot::Sender<RoundResult>>,
}

/// Which of the two kinds of round.
#[derive(Clone, Copy)]
enum Side {
    Local,
    Remote,
}

impl ReadIndex {
    pub(crate) fn new(raft: OpenRaft, links: Arc<Links>) -> Self {
        Self {
            raft,
            links,
            local: Rounds::default(),
            remote: Rounds::default(),
            broken: watch::Sender::new(false),
        }
    }

    /// The position that a read which begins now must see.
    pub(crate) async fn point(self: &Arc<Self>, deadline: Duration) -> RoundResult {
        let side = match self.leader() {
            Some(leader) if leader == self.links.node => Side::Local,
            _ => Side::Remote,
        };
        let waiter = self.join(side);
        match tokio::time::timeout(deadline, waiter).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(ReadError::Stopped),
            Err(_) => Err(ReadError::Timeout),
        }
    }

    /// The answer to a follower that asks.
    pub(crate) async fn answer_peer(self: &Arc<Self>) -> ReadIndexReply {
        match self.join(Side::Local).await {
            Ok(Ok(point)) => ReadIndexReply::Point(point),
            Ok(Err(ReadError::NoLeader { leader })) => ReadIndexReply::NotLeader(leader),
            Ok(Err(_)) | Err(_) => ReadIndexReply::NoQuorum,
        }
    }

    /// Resolves when a round has panicked: the replica must not go on.
    pub(crate) async fn broken(&self) {
        let mut broken = self.broken.subscribe();
        // The sender lives as long as `self`.
        drop(broken.wait_for(|broken| *broken).await);
    }

    /// Waits for the next round of `side`, and starts it unless one runs.
    fn join(self: &Arc<Self>, side: Side) -> oneshot::Receiver<RoundResult> {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.rounds(side).lock();
        state.waiting.push(sender);
        if !state.running {
            state.running = true;
            drop(state);
            let this = Arc::clone(self);
            tokio::spawn(async move { this.run(side).await });
        }
        receiver
    }

    /// Runs rounds until nobody waits.
    async fn run(&self, side: Side) {
        let _guard = RoundGuard { reads: self, side };
        loop {
            let waiting = {
                let mut state = self.rounds(side).lock();
                if state.waiting.is_empty() {
                    state.running = false;
                    return;
                }
                std::mem::take(&mut state.waiting)
            };
            let result = match side {
                Side::Local => self.ask_majority().await,
                Side::Remote => self.ask_leader().await,
            };
            for waiter in waiting {
                // A waiter whose deadline passed is gone.
                drop(waiter.send(result.clone()));
            }
        }
    }

    fn rounds(&self, side: Side) -> &Rounds {
        match side {
            Side::Local => &self.local,
            Side::Remote => &self.remote,
        }
    }

    async fn ask_majority(&self) -> RoundResult {
        let option = LinearizerOption::new(Some(Duration::ZERO), true)
            .with_wait_timeout(self.links.timing.election_max);
        match self.raft.get_read_linearizer(option).await {
            Ok(linearizer) => Ok(point_of(linearizer.read_log_id().log_id())),
            Err(OpenraftError::APIError(LinearizableReadError::ForwardToLeader(forward))) => {
                Err(ReadError::NoLeader {
                    leader: forward.leader_id.map(node_of),
                })
            }
            Err(OpenraftError::APIError(LinearizableReadError::QuorumNotEnough(_))) => {
                Err(ReadError::NoQuorum)
            }
            Err(OpenraftError::Fatal(_)) => Err(ReadError::Stopped),
        }
    }

    async fn ask_leader(&self) -> RoundResult {
        let Some(leader) = self.leader() else {
            return Err(ReadError::NoLeader { leader: None });
        };
        if leader == self.links.node {
            return self.ask_majority().await;
        }
        let kind = RaftKind::ReadIndex;
        let request = message::request_header(kind as u8, self.links.group, 0).freeze();
        // The leader gives up on its majority after one election time; add as much for the way.
        let deadline = self.links.timing.election_max.saturating_mul(2);
        let call = self
            .links
            .call(leader, PeerClass::Control, kind, request, deadline);
        let body = call.await.map_err(|error| match error {
            CallError::Bus(BusError::Timeout) => ReadError::Timeout,
            error => ReadError::Unreachable(error.to_string()),
        })?;
        let reply = message::decode_read_reply(body)
            .map_err(|error| ReadError::Unreachable(error.to_string()))?;
        match reply {
            ReadIndexReply::Point(point) => Ok(point),
            ReadIndexReply::NotLeader(leader) => Err(ReadError::NoLeader { leader }),
            ReadIndexReply::NoQuorum => Err(ReadError::NoQuorum),
        }
    }

    fn leader(&self) -> Option<NodeId> {
        let metrics = self.raft.server_metrics();
        let leader = metrics.borrow_watched().current_leader;
        leader.map(node_of)
    }
}

/// Lets nobody wait for a round that ended by a panic.
struct RoundGuard<'a> {
    reads: &'a ReadIndex,
    side: Side,
}

impl Drop for RoundGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut state = self.reads.rounds(self.side).lock();
            state.running = false;
            state.waiting.clear();
            drop(state);
            self.reads.broken.send_replace(true);
        }
    }
}

fn point_of(id: &LogId) -> ReadPoint {
    ReadPoint {
        term: Term::new(id.leader_id.term),
        index: LogIndex::new(id.index),
    }
}

impl Rounds {
    fn lock(&self) -> std::sync::MutexGuard<'_, RoundsState> {
        self.state
            .lock()
            .expect("nothing panics while it holds this lock")
    }
}
