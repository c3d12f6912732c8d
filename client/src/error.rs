//! What can go wrong with a call, by what the caller can do about it.

use kelp_wire::{Executed, RequestError, Status};
use thiserror::Error;

/// Why a call of a [`Client`](crate::Client) has no result.
///
/// [`ClientError::executed`] says whether the call may have changed anything.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The builder was given something that cannot work. Correct it.
    #[error("{problem}")]
    Configuration {
        /// What is wrong.
        problem: String,
    },
    /// The request breaks a limit of the protocol and was not sent. Correct it.
    #[error("request is not allowed: {0}")]
    Invalid(RequestError),
    /// No node could serve the call before its deadline. Not executed: try again later.
    #[error("unavailable after {attempts} attempts: {reason}")]
    Unavailable {
        /// How often it was tried.
        attempts: u32,
        /// Whether there was a connection to any node.
        reached: bool,
        /// What the last attempt met.
        reason: String,
    },
    /// The write may have been executed, or may still be. Read before deciding to repeat it.
    #[error("outcome unknown: {reason}")]
    OutcomeUnknown {
        /// What happened.
        reason: String,
    },
    /// A node refused the call for a reason that time does not heal. Not executed.
    #[error("{status}: {message}")]
    Refused {
        /// The kind of refusal.
        status: Status,
        /// The node's words.
        message: String,
    },
    /// A node answered what the protocol does not allow for this call.
    #[error("unexpected reply: {problem}")]
    UnexpectedReply {
        /// What is wrong with it.
        problem: &'static str,
        /// Whether the call has taken effect, as the reply's status says.
        executed: Executed,
    },
}

impl ClientError {
    /// Whether the call may have changed anything. Reads never do: always `No` for them.
    pub fn executed(&self) -> Executed {
        match self {
            Self::Configuration { .. }
            | Self::Invalid(_)
            | Self::Unavailable { .. }
            | Self::Refused { .. } => Executed::No,
            Self::OutcomeUnknown { .. } => Executed::Unknown,
            Self::UnexpectedReply { executed, .. } => *executed,
        }
    }
}
