//! The graceful end of a node.

use std::sync::atomic::Ordering;
use std::time::Duration;

use kelp_raft::Role;
use tokio::time::{Instant, timeout, timeout_at};

use super::Node;

/// For the steps after the grace period. A healthy disk needs milliseconds; a stuck one must not
/// keep the process.
const FINISH_TIME_MAX: Duration = Duration::from_secs(5);

/// For scrapes that are under way when all else has ended. A slow one must not keep the database
/// open.
const HTTP_TIME_MAX: Duration = Duration::from_millis(500);

impl Node {
    /// Stops within about `grace`: hands the leadership over, answers what is in flight through
    /// the new leader, then syncs and closes everything.
    pub async fn stop(self, grace: Duration) {
        self.stopping.store(true, Ordering::Relaxed);
        let until = Instant::now() + grace;
        // Half of the time, so that as much is left for the clients.
        if timeout(grace / 2, hand_over(&self.raft)).await.is_err() {
            tracing::warn!("leadership was not handed over in time; the others will elect");
        }
        self.stop_ports.send_replace(true);
        for mut client_port in self.client_ports {
            if timeout_at(until, &mut client_port).await.is_err() {
                tracing::warn!(
                    ?grace,
                    "clients still wait for answers; closing their connections"
                );
                client_port.abort();
            }
        }
        for writer in self.writers {
            writer.abort();
        }
        self.heartbeats.abort();
        let finish = async {
            self.raft.shutdown().await;
            self.peers.stop().await;
            self.links.stop().await;
            self.stop_http.send_replace(true);
            let mut http_port = self.http_port;
            if timeout(HTTP_TIME_MAX, &mut http_port).await.is_err() {
                http_port.abort();
            }
            let database = self.database;
            let closed = kelp_seams::blocking(self.executor.as_ref(), move || database.close());
            closed.await.is_ok()
        };
        if timeout(FINISH_TIME_MAX, finish).await == Ok(true) {
            tracing::info!("node stopped");
        } else {
            // What is on disk decides at the next start, as after a kill.
            tracing::warn!("node stopped without closing its database");
        }
    }
}

/// Gives the leadership to the voter with the longest log, the next one if that one refuses.
async fn hand_over(raft: &kelp_raft::Raft) {
    let status = raft.status();
    if status.role != Role::Leader {
        return;
    }
    let mut voters: Vec<_> = status
        .members
        .iter()
        .filter(|(node, member)| member.voter && **node != status.node)
        .map(|(node, _)| *node)
        .collect();
    voters.sort_by_key(|node| std::cmp::Reverse(status.replication.get(node).copied().flatten()));
    for voter in voters {
        match raft.transfer_leader(voter).await {
            Ok(()) => {
                tracing::info!(to = %voter, "leadership handed over");
                return;
            }
            Err(error) => tracing::warn!(to = %voter, %error, "leadership was not taken"),
        }
    }
}
