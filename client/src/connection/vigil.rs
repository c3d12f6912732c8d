//! Whether a node that owes replies is still there.
//!
//! A node whose network is gone does not close its connections; without this watch a caller would
//! wait for the retransmission timeout of TCP, a quarter of an hour. Pure: time is handed in.

#[cfg(test)]
mod tests;

use std::time::Duration;

use tokio::time::Instant;

/// Watches the signs of life of one node.
#[derive(Debug)]
pub(super) struct Vigil {
    alive_at: Instant,
    has_asked: bool,
    ask_after: Duration,
    dead_after: Duration,
}

/// What a look at the clock found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// Nothing to do before the next look.
    Well,
    /// The node has been quiet: ask it for a sign of life. Found once per silence.
    Doubtful,
    /// The node did not even answer that.
    Dead,
}

impl Vigil {
    pub(super) fn new(now: Instant, ask_after: Duration, dead_after: Duration) -> Self {
        Self {
            alive_at: now,
            has_asked: false,
            ask_after,
            dead_after: dead_after.max(ask_after),
        }
    }

    pub(super) fn note_life(&mut self, now: Instant) {
        self.alive_at = now;
        self.has_asked = false;
    }

    /// When to look next at a node that has owed something since `owes_since`.
    pub(super) fn next_look(&self, owes_since: Instant) -> Instant {
        let patience = if self.has_asked {
            self.dead_after
        } else {
            self.ask_after
        };
        self.alive_at.max(owes_since) + patience
    }

    pub(super) fn look(&mut self, now: Instant, owes_since: Instant) -> Finding {
        if now < self.next_look(owes_since) {
            return Finding::Well;
        }
        if self.has_asked {
            return Finding::Dead;
        }
        self.has_asked = true;
        Finding::Doubtful
    }
}
