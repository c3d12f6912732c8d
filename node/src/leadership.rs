//! Who leads, as far as this node can vouch for it: where writes go, and when to say that nobody
//! does.
//!
//! Raft keeps the name of a dead leader until a new one is elected, so the name alone is no reason
//! to send there: what counts is how long ago the leader was heard of, and on the leader itself how
//! long ago a quorum answered it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kelp_raft::{NodeId, Raft, RaftStatus, Role, Timing};
use kelp_seams::{Clock, Monotonic};
use tokio::sync::watch;

/// After this many election timeouts without a word from a leader, waiting writes are refused: a
/// healthy cluster elects within two.
const LOST_AFTER_ELECTIONS: u32 = 3;

/// A leader that has not been heard of for this many election timeouts is no longer sent to.
const SILENT_AFTER_ELECTIONS: u32 = 2;

/// Where this node's sub-batches go, if there is a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// This node leads.
    Here,
    /// That peer leads.
    Peer(NodeId),
}

/// Watches Raft's status on behalf of the proposer and of the ports.
pub(crate) struct Leadership {
    raft: Raft,
    clock: Arc<dyn Clock>,
    election_max: Duration,
    state: Mutex<State>,
}

#[derive(Clone, Copy)]
struct State {
    route: Option<Route>,
    /// Since when there is no route.
    nowhere_since: Option<Monotonic>,
    /// How often Raft's status was looked at.
    look: u64,
}

impl Leadership {
    pub(crate) fn new(raft: Raft, clock: Arc<dyn Clock>, timing: Timing) -> Self {
        let state = State {
            route: None,
            nowhere_since: Some(clock.monotonic()),
            look: 0,
        };
        let leadership = Self {
            raft,
            clock,
            election_max: timing.election_max,
            state: Mutex::new(state),
        };
        leadership.refresh();
        leadership
    }

    /// The route as of the last look.
    pub(crate) fn route(&self) -> Option<Route> {
        self.state().route
    }

    /// True when there has been no leader for so long that waiting for one is no use.
    pub(crate) fn is_lost(&self) -> bool {
        let limit = self.election_max * LOST_AFTER_ELECTIONS;
        let now = self.clock.monotonic();
        self.state()
            .nowhere_since
            .is_some_and(|since| now.saturating_duration_since(since) > limit)
    }

    /// Looks at Raft's status again.
    pub(crate) fn refresh(&self) {
        let route = route_of(
            &self.raft.status(),
            self.election_max * SILENT_AFTER_ELECTIONS,
        );
        let now = self.clock.monotonic();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.nowhere_since = match route {
            None => state.nowhere_since.or(Some(now)),
            Some(_) => None,
        };
        state.route = route;
        state.look += 1;
    }

    /// The number of the last look at Raft's status: what was found out since need not be found
    /// out again before the next one. There are a few dozen a second.
    pub(crate) fn look(&self) -> u64 {
        self.state().look
    }

    /// Counts the changes of role, leader, term and membership.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.raft.status_watch()
    }

    fn state(&self) -> State {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn route_of(status: &RaftStatus, silent_after: Duration) -> Option<Route> {
    let heard = status.leader_contact.is_some_and(|age| age <= silent_after);
    match status.leader {
        Some(leader) if heard && leader == status.node && status.role == Role::Leader => {
            Some(Route::Here)
        }
        Some(leader) if heard && leader != status.node => Some(Route::Peer(leader)),
        _ => None,
    }
}
