//! A reply that owns its bytes, as callers get it.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use kelp_wire::{NodeId, Response, Revision, SessionToken, Status};

/// Values up to this length are copied out of the read buffer; longer ones share it. A short value
/// that a program keeps must not keep a whole read buffer alive.
pub(super) const VALUE_COPY_BYTES_MAX: usize = 4 * 1024;

/// What a node answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// What happened.
    pub status: Status,
    /// Revision of the write or of the record read.
    pub revision: Option<Revision>,
    /// Who leads, with some refusals.
    pub leader: Option<LeaderAddress>,
    /// How long to wait before another attempt, with some refusals.
    pub retry_after: Option<Duration>,
    /// What the reply has seen of the log.
    pub token: Option<SessionToken>,
    /// In a scan: the cursor of the next page, empty when complete.
    pub cursor: Bytes,
    /// The result, or the text of the error.
    pub value: Bytes,
}

impl Reply {
    /// Takes over a response; `value` is its value, owned by the caller's choice.
    pub(super) fn new(response: &Response<'_>, value: Bytes) -> Self {
        let fields = &response.fields;
        Self {
            status: response.status,
            revision: fields.revision,
            leader: fields.leader.map(|leader| LeaderAddress {
                node: leader.node,
                address: leader.address.into(),
            }),
            retry_after: fields.retry_after,
            token: fields.token,
            cursor: Bytes::copy_from_slice(response.key),
            value,
        }
    }

    /// The text of an error reply; bytes that are not UTF-8 are replaced.
    pub fn error_text(&self) -> String {
        String::from_utf8_lossy(&self.value).into_owned()
    }
}

/// Who leads, as far as the answering node knew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderAddress {
    /// Node id of the leader.
    pub node: NodeId,
    /// Its client address.
    pub address: Box<str>,
}

/// The values of the frames of one reply, put together while more frames follow.
#[derive(Debug, Default)]
pub(super) struct Parts {
    joined: BytesMut,
}

impl Parts {
    pub(super) fn bytes(&self) -> usize {
        self.joined.len()
    }

    pub(super) fn push(&mut self, value: &[u8]) {
        self.joined.extend_from_slice(value);
    }

    pub(super) fn join(mut self, last: &[u8]) -> Bytes {
        self.push(last);
        self.joined.freeze()
    }
}
