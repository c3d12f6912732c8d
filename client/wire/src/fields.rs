//! The typed fields of responses.
//!
//! Unlike options, a field that the reader does not know is skipped: a newer node may say more,
//! and nothing in a field changes what the status says.

use std::time::Duration;

use bytes::BytesMut;

use crate::options::{decode_millis, decode_token, encode_token, millis};
use crate::tlv::{self, TlvReader};
use crate::{FrameFault, LEADER_ADDRESS_BYTES_MAX, NodeId, OptionFault, Revision, SessionToken};

const REVISION: u8 = 0x01;
const LEADER: u8 = 0x02;
const RETRY_AFTER: u8 = 0x03;
const TOKEN: u8 = 0x04;

/// Who leads, as far as the answering node knows. A hint: any node takes any request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaderHint<'a> {
    /// Node id of the leader.
    pub node: NodeId,
    /// Its client address, host and port.
    pub address: &'a str,
}

/// What a reply says besides its status, key and value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseFields<'a> {
    /// Revision of the write, or of the record read.
    pub revision: Option<Revision>,
    /// The leader, with refusals that another node may not have to make.
    pub leader: Option<LeaderHint<'a>>,
    /// How long to wait before another attempt; whole milliseconds on the wire, rounded up.
    pub retry_after: Option<Duration>,
    /// What this reply has seen of the log.
    pub token: Option<SessionToken>,
}

impl<'a> ResponseFields<'a> {
    /// Fields of a reply that only names a revision.
    pub fn with_revision(revision: Revision) -> Self {
        Self {
            revision: Some(revision),
            ..Self::default()
        }
    }

    pub(crate) fn decode(extra: &'a [u8]) -> Result<Self, FrameFault> {
        let mut fields = Self::default();
        for field in TlvReader::new(extra) {
            let (tag, value) = field.map_err(|fault| FrameFault::BadField { tag: 0, fault })?;
            fields
                .read(tag, value)
                .map_err(|fault| FrameFault::BadField { tag, fault })?;
        }
        Ok(fields)
    }

    fn read(&mut self, tag: u8, value: &'a [u8]) -> Result<(), OptionFault> {
        match tag {
            REVISION => {
                let revision = u64::from_be_bytes(tlv::fixed(value)?);
                once(&mut self.revision, Revision::new(revision))
            }
            LEADER => once(&mut self.leader, decode_leader(value)?),
            RETRY_AFTER => once(&mut self.retry_after, decode_millis(tlv::fixed(value)?)),
            TOKEN => once(&mut self.token, decode_token(value)?),
            _ => Ok(()),
        }
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        if let Some(revision) = self.revision {
            tlv::put(out, REVISION, &revision.get().to_be_bytes());
        }
        if let Some(leader) = self.leader {
            let address = leader.address.as_bytes();
            assert!(
                address.len() <= LEADER_ADDRESS_BYTES_MAX,
                "leader address of {} bytes is over the limit",
                address.len()
            );
            let mut value = [0; 2 + LEADER_ADDRESS_BYTES_MAX];
            value[..2].copy_from_slice(&leader.node.get().to_be_bytes());
            value[2..2 + address.len()].copy_from_slice(address);
            tlv::put(out, LEADER, &value[..2 + address.len()]);
        }
        if let Some(retry_after) = self.retry_after {
            tlv::put(out, RETRY_AFTER, &millis(retry_after).to_be_bytes());
        }
        if let Some(token) = self.token {
            tlv::put(out, TOKEN, &encode_token(token));
        }
    }
}

fn once<T>(field: &mut Option<T>, value: T) -> Result<(), OptionFault> {
    match field.replace(value) {
        None => Ok(()),
        Some(_) => Err(OptionFault::Repeated),
    }
}

fn decode_leader(value: &[u8]) -> Result<LeaderHint<'_>, OptionFault> {
    let (node, address) = value.split_first_chunk().ok_or(OptionFault::BadValue)?;
    if address.len() > LEADER_ADDRESS_BYTES_MAX {
        return Err(OptionFault::BadValue);
    }
    Ok(LeaderHint {
        node: NodeId::new(u16::from_be_bytes(*node)),
        address: std::str::from_utf8(address).map_err(|_| OptionFault::BadValue)?,
    })
}
