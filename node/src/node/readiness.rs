//! Whether a node should get traffic.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kelp_raft::{LogIndex, Raft};

use crate::http::{ReadinessCheck, ReadinessSource};
use crate::leadership::{Leadership, Route};

/// Ready means: it knows a leader, has applied all that was committed when it started, and is not
/// stopping.
pub(super) struct Readiness {
    raft: Raft,
    leadership: Arc<Leadership>,
    stopping: Arc<AtomicBool>,
    committed_at_start: Option<LogIndex>,
}

impl Readiness {
    pub(super) fn new(raft: Raft, leadership: Arc<Leadership>, stopping: Arc<AtomicBool>) -> Self {
        let committed_at_start = raft.status().committed;
        Self {
            raft,
            leadership,
            stopping,
            committed_at_start,
        }
    }
}

impl ReadinessSource for Readiness {
    fn checks(&self) -> Vec<ReadinessCheck> {
        let status = self.raft.status();
        let leader = self.leadership.route().map(|route| match route {
            Route::Here => "this node leads".to_owned(),
            Route::Peer(leader) => format!("node {leader} leads"),
        });
        let index = |index: Option<LogIndex>| {
            index.map_or("none".to_owned(), |index| index.get().to_string())
        };
        vec![
            ReadinessCheck {
                name: "leader",
                ready: leader.is_some(),
                detail: leader.unwrap_or_else(|| "no leader is known".to_owned()),
            },
            ReadinessCheck {
                name: "applied",
                ready: status.applied.is_some() && status.applied >= self.committed_at_start,
                detail: format!(
                    "applied {}, committed at start {}",
                    index(status.applied),
                    index(self.committed_at_start),
                ),
            },
            running(self.stopping.load(Ordering::Relaxed)),
        ]
    }
}

fn running(is_stopping: bool) -> ReadinessCheck {
    let detail = if is_stopping {
        "asked to stop: hands over and drains"
    } else {
        "not asked to stop"
    };
    ReadinessCheck {
        name: "running",
        ready: !is_stopping,
        detail: detail.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopping_node_says_that_it_was_asked_to() {
        let running = [running(false), running(true)].map(|check| (check.ready, check.detail));
        assert_eq!(running[0], (true, "not asked to stop".to_owned()));
        assert_eq!(
            running[1],
            (false, "asked to stop: hands over and drains".to_owned())
        );
    }
}
