//! How far the sub-batches of one node are executed.

use bytes::{BufMut, Bytes, BytesMut};

use crate::model::{BatchNumber, Boot, DecodeError, SliceReader};

/// How far the sub-batches of one node are executed.
///
/// Invariants: `floor` is at least 1 and at most `last`; the state holds the replies of
/// `floor..=last` of `boot` and of no other sub-batch of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeProgress {
    /// The newest boot that a sub-batch was executed of.
    pub boot: Boot,
    /// The last executed sub-batch of that boot.
    pub last: BatchNumber,
    /// The lowest sub-batch whose replies are kept.
    pub floor: BatchNumber,
}

const VERSION: u8 = 1;

impl NodeProgress {
    /// The encoded record.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(25);
        out.put_u8(VERSION);
        out.put_u64(self.boot.get());
        out.put_u64(self.last.get());
        out.put_u64(self.floor.get());
        out.freeze()
    }

    /// Reads a record.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let what = "node progress";
        let mut reader = SliceReader::new(bytes, what);
        let version = reader.u8()?;
        if version != VERSION {
            return Err(DecodeError::Version { what, version });
        }
        let boot = Boot::new(reader.u64()?);
        let last = BatchNumber::new(reader.u64()?);
        let floor = BatchNumber::new(reader.u64()?);
        reader.finish()?;
        if floor < BatchNumber::FIRST || floor > last {
            return Err(DecodeError::malformed(what));
        }
        Ok(Self { boot, last, floor })
    }
}
