//! The reply to a follower that asks for a read index. The request has an empty body.

use bytes::{BufMut, Bytes, BytesMut};

use crate::codec::{CodecError, Reader};
use crate::model::{LogIndex, NodeId, Term};
use crate::read_index::ReadPoint;

const POINT: u8 = 0;
const NOT_LEADER: u8 = 1;
const NO_QUORUM: u8 = 2;

/// Bytes of the longest reply.
const POINT_BYTES: usize = 1 + 8 + 8;

/// What a node answers to a read index request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReadIndexReply {
    /// Reads that follow this position are linearizable.
    Point(ReadPoint),
    /// The node does not lead; it may know who does.
    NotLeader(Option<NodeId>),
    /// The node leads, but no majority confirmed it in time.
    NoQuorum,
}

pub(crate) fn encode_read_reply(reply: &ReadIndexReply) -> Bytes {
    let mut out = BytesMut::with_capacity(POINT_BYTES);
    match reply {
        ReadIndexReply::Point(point) => {
            out.put_u8(POINT);
            out.put_u64(point.term.get());
            out.put_u64(point.index.get());
        }
        ReadIndexReply::NotLeader(leader) => {
            out.put_u8(NOT_LEADER);
            out.put_u8(u8::from(leader.is_some()));
            if let Some(leader) = leader {
                out.put_u16(leader.get());
            }
        }
        ReadIndexReply::NoQuorum => out.put_u8(NO_QUORUM),
    }
    out.freeze()
}

pub(crate) fn decode_read_reply(body: Bytes) -> Result<ReadIndexReply, CodecError> {
    let mut reader = Reader::new(body);
    let reply = match reader.u8("read outcome")? {
        POINT => ReadIndexReply::Point(ReadPoint {
            term: Term::new(reader.u64("term")?),
            index: LogIndex::new(reader.u64("log index")?),
        }),
        NOT_LEADER => {
            let leader = if reader.flag("leader present")? {
                Some(NodeId::new(reader.u16("leader")?))
            } else {
                None
            };
            ReadIndexReply::NotLeader(leader)
        }
        NO_QUORUM => ReadIndexReply::NoQuorum,
        other => {
            return Err(CodecError::Undefined {
                field: "read outcome",
                value: u64::from(other),
            });
        }
    };
    reader.finish()?;
    Ok(reply)
}
