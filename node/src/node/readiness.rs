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
            ReadinessCheck {
                name: "running",
                ready: !self.stopping.load(Ordering::Relaxed),
                detail: "not asked to stop".to_owned(),
            },
        ]
    }
}
