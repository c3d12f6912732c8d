//! The vote as it rests in the log's metadata: version u8 | term u64 | node u16 | committed u8.

use bytes::{BufMut, Bytes, BytesMut};

use crate::codec::{CodecError, Reader};
use crate::message;
use crate::type_config::Vote;

/// Version of the record.
const VOTE_RECORD_VERSION: u8 = 1;

/// Encodes a vote for the log.
pub(crate) fn encode(vote: &Vote) -> Bytes {
    let mut out = BytesMut::with_capacity(16);
    out.put_u8(VOTE_RECORD_VERSION);
    message::put_vote(&mut out, vote);
    out.freeze()
}

/// Decodes what [`encode`] wrote.
pub(crate) fn decode(bytes: Bytes) -> Result<Vote, CodecError> {
    let mut reader = Reader::new(bytes);
    let version = reader.u8("vote record version")?;
    if version != VOTE_RECORD_VERSION {
        return Err(CodecError::Undefined {
            field: "vote record version",
            value: u64::from(version),
        });
    }
    let vote = message::read_vote(&mut reader)?;
    reader.finish()?;
    Ok(vote)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden;
    use crate::type_config::LeaderId;

    #[test]
    fn a_vote_survives_the_log_and_keeps_its_bytes() {
        let vote = Vote {
            leader_id: LeaderId {
                term: 5,
                node_id: 3,
            },
            committed: true,
        };
        assert_eq!(decode(encode(&vote)).unwrap(), vote);
        golden::check("vote_record.bin", &encode(&vote));
    }
}
