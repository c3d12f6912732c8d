//! Proposing entries: into the log in call order, outcomes as they are applied.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use openraft::errors::{ClientWriteError, ForwardToLeader};
use openraft::impls::ProgressResponder;
use openraft::raft::ClientWriteResult;
use tokio::sync::oneshot;

use super::Raft;
use crate::error::ProposeError;
use crate::model::{Entry, EntryOutcome};
use crate::payload;
use crate::type_config::{EntryBytes, TypeConfig, node_of};

/// An entry on its way; resolves to its outcome once it is applied here.
///
/// Dropping it abandons the outcome, not the entry.
#[must_use = "the outcome of a proposal tells whether it was executed"]
pub struct Proposal {
    outcome: oneshot::Receiver<ClientWriteResult<TypeConfig>>,
}

impl Raft {
    /// Proposes an encoded [`Entry`].
    ///
    /// Returns when the entry is queued for the log, which takes no disk or network time. Entries
    /// enter the log in the order in which these calls returned; several may be in flight, and
    /// none waits for the apply of another.
    ///
    /// # Errors
    ///
    /// Only [`ProposeError::Invalid`] and [`ProposeError::Stopped`] come from this call; whether
    /// this node leads is found out later and told by the [`Proposal`].
    pub async fn propose(&self, entry: Bytes) -> Result<Proposal, ProposeError> {
        if !payload::is_entry(&entry) {
            return Err(ProposeError::Invalid(
                "not an entry of a known version".to_owned(),
            ));
        }
        Entry::decode(&entry).map_err(|error| ProposeError::Invalid(error.to_string()))?;
        let (responder, outcome) = ProgressResponder::complete_only();
        // Not turned away by tokio's budget: the first poll fixes the place in the log.
        let queued = self
            .inner
            .raft
            .client_write_ff(EntryBytes(entry), Some(responder));
        let queued = tokio::task::unconstrained(queued).await;
        queued.map_err(|_| ProposeError::Stopped)?;
        Ok(Proposal { outcome })
    }
}

impl Future for Proposal {
    type Output = Result<EntryOutcome, ProposeError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let result = match Pin::new(&mut self.outcome).poll(context) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(result) => result,
        };
        Poll::Ready(match result {
            Ok(Ok(response)) => Ok(response.data),
            Ok(Err(ClientWriteError::ForwardToLeader(ForwardToLeader { leader_id, .. }))) => {
                Err(ProposeError::NotLeader {
                    leader: leader_id.map(node_of),
                })
            }
            // Only `LogEntryDiscarded` remains for a normal entry; whatever else may be added
            // later, "unknown" is the safe answer.
            Ok(Err(_)) => Err(ProposeError::Discarded),
            Err(_) => Err(ProposeError::Stopped),
        })
    }
}
