//! Tells a blocked UDP from a dead peer, and says so once.
//!
//! ```text
//!            heartbeat                 silence
//! Waiting ------------> Arriving --------------------> Missing
//!    |                     ^  ^                           |
//!    |                     |  `------- heartbeat ---------|
//!    |                     |                              | TCP is alive, UDP silent
//!    `---- the same ---> Blocked <------------------------'
//! ```

use std::time::Duration;

use kelp_seams::Monotonic;

use super::HEARTBEAT_INTERVAL;
use super::liveness::HeartbeatState;

/// Heartbeats are missing after this long: ten in a row do not get lost by chance.
pub(super) const MISSING_AFTER: Duration = HEARTBEAT_INTERVAL.saturating_mul(10);

/// UDP counts as blocked when the peer was reachable over TCP for this long without a heartbeat:
/// longer than a connection needs to be found dead or a peer to start.
const BLOCKED_AFTER: Duration = Duration::from_secs(5);

/// A network that comes and goes is told of at most this often.
const TOLD_INTERVAL: Duration = Duration::from_mins(1);

/// What an operator should be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// The peer is there, and its heartbeats do not come.
    Blocked,
    /// They come again.
    Unblocked,
}

/// Watches the heartbeats of one peer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Silence {
    state: HeartbeatState,
    /// Since when the peer is reachable over TCP without a heartbeat.
    reachable_since: Option<Monotonic>,
    /// When a blockage was last told of, and whether its end is still to be told.
    told: Option<Monotonic>,
    owes_end: bool,
}

impl Silence {
    pub(super) fn state(&self) -> HeartbeatState {
        self.state
    }

    /// Looks at the peer: when its last heartbeat came, and whether TCP reaches it.
    pub(super) fn look(
        &mut self,
        heard: Option<Monotonic>,
        is_reachable: bool,
        now: Monotonic,
    ) -> Option<News> {
        let before = self.state;
        self.state = self.judge(heard, is_reachable, now);
        match (before, self.state) {
            (HeartbeatState::Blocked, HeartbeatState::Blocked) => None,
            (_, HeartbeatState::Blocked) => self.tell_blocked(now),
            (_, HeartbeatState::Arriving) if self.owes_end => {
                self.owes_end = false;
                Some(News::Unblocked)
            }
            _ => None,
        }
    }

    fn judge(
        &mut self,
        heard: Option<Monotonic>,
        is_reachable: bool,
        now: Monotonic,
    ) -> HeartbeatState {
        let age = heard.map(|heard| now.saturating_duration_since(heard));
        if age.is_some_and(|age| age < MISSING_AFTER) {
            self.reachable_since = None;
            return HeartbeatState::Arriving;
        }
        // Waiting is over with the first heartbeat, and with the first blockage.
        let silent = if heard.is_none() && self.state == HeartbeatState::Waiting {
            HeartbeatState::Waiting
        } else {
            HeartbeatState::Missing
        };
        if !is_reachable {
            self.reachable_since = None;
            return silent;
        }
        let since = *self.reachable_since.get_or_insert(now);
        if now.saturating_duration_since(since) < BLOCKED_AFTER {
            return silent;
        }
        HeartbeatState::Blocked
    }

    fn tell_blocked(&mut self, now: Monotonic) -> Option<News> {
        let recently = |told: Monotonic| now.saturating_duration_since(told) < TOLD_INTERVAL;
        if self.told.is_some_and(recently) {
            return None;
        }
        self.told = Some(now);
        self.owes_end = true;
        Some(News::Blocked)
    }
}

#[cfg(test)]
mod tests;
