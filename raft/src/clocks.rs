//! The time that a majority agrees has passed.
//!
//! Each reply of a peer carries its wall clock. This table keeps the largest one heard from each
//! member; together with the node's own clock it answers which moment a majority of the voters'
//! clocks have passed. One clock that runs ahead cannot push time forward, and one that lags
//! cannot hold it back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use kelp_seams::WallMillis;

use crate::model::NodeId;

/// The last wall clock heard from each peer.
#[derive(Debug, Default)]
pub(crate) struct PeerClocks {
    heard: Mutex<BTreeMap<NodeId, WallMillis>>,
}

impl PeerClocks {
    /// Notes what `peer` said its clock shows.
    pub(crate) fn observe(&self, peer: NodeId, wall: WallMillis) {
        let mut heard = self
            .heard
            .lock()
            .expect("nothing panics while it holds this lock");
        let known = heard.entry(peer).or_insert(wall);
        *known = wall.max(*known);
    }

    /// The largest time that a majority of each of `configs` has passed; `None` without voters or
    /// while too few of them were heard.
    ///
    /// `own` is the id of this node and what its clock shows now.
    pub(crate) fn majority(
        &self,
        configs: &[BTreeSet<NodeId>],
        own: (NodeId, WallMillis),
    ) -> Option<WallMillis> {
        let heard = self
            .heard
            .lock()
            .expect("nothing panics while it holds this lock");
        let of = |voter: &NodeId| {
            if *voter == own.0 {
                Some(own.1)
            } else {
                heard.get(voter).copied()
            }
        };
        let per_config = configs
            .iter()
            .filter(|voters| !voters.is_empty())
            .map(|voters| {
                let mut clocks: Vec<Option<WallMillis>> = voters.iter().map(of).collect();
                clocks.sort_unstable_by(|left, right| right.cmp(left));
                clocks[voters.len() / 2]
            });
        per_config.min().flatten()
    }
}

#[cfg(test)]
mod tests;
