//! Datagrams: what travels over UDP, each behind the same four bytes.
//!
//! ```text
//! magic 0xA1 | opcode u8 | length u16 BE of what follows | body
//! ```
//!
//! A datagram arrives whole or not at all, so its length must be exactly what the header says. The
//! body of a heartbeat is drawn in [`crate::SealedHeartbeat`], that of telemetry in
//! [`crate::Telemetry`]; the byte tables are in `docs/formats/heartbeat.md`.

use thiserror::Error;

use crate::MAGIC;

/// Length of the header of a datagram.
pub const DATAGRAM_HEADER_BYTES: usize = 4;

/// The longest datagram, header included: with the headers of IPv6 and UDP it still passes every
/// network in one piece (1,280 bytes is the smallest that IPv6 allows).
pub const DATAGRAM_BYTES_MAX: usize = 1_200;

/// What a datagram is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DatagramOpcode {
    /// Measured values of whoever sends them: `name=value` pairs.
    Telemetry = 0x05,
    /// A node's sign of life to a peer.
    Heartbeat = 0x06,
}

impl DatagramOpcode {
    /// The opcode of a byte, unless this version does not know it.
    #[inline]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0x05 => Some(Self::Telemetry),
            0x06 => Some(Self::Heartbeat),
            _ => None,
        }
    }
}

/// The first four bytes of a datagram, read but not yet judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramHeader {
    /// First byte; [`MAGIC`] in a sound datagram.
    pub magic: u8,
    /// Opcode byte.
    pub opcode: u8,
    /// Bytes that follow the header.
    pub body_bytes: u16,
}

impl DatagramHeader {
    /// Reads the fields; any four bytes are a header.
    #[inline]
    pub const fn decode(bytes: &[u8; DATAGRAM_HEADER_BYTES]) -> Self {
        let [magic, opcode, high, low] = *bytes;
        Self {
            magic,
            opcode,
            body_bytes: u16::from_be_bytes([high, low]),
        }
    }

    /// Length of the whole datagram, header included.
    #[inline]
    pub fn length(&self) -> usize {
        DATAGRAM_HEADER_BYTES + usize::from(self.body_bytes)
    }

    /// Writes the fields.
    #[inline]
    pub const fn encode(&self) -> [u8; DATAGRAM_HEADER_BYTES] {
        let [high, low] = self.body_bytes.to_be_bytes();
        [self.magic, self.opcode, high, low]
    }
}

/// A datagram whose header is sound; what its body says is still to be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// What it is for.
    pub opcode: DatagramOpcode,
    /// All of it, header included.
    pub bytes: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// Checks the header of `bytes`, which are one whole datagram. Allocates nothing.
    ///
    /// # Errors
    /// It is not a datagram of this protocol and must not be answered.
    #[inline]
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DatagramFault> {
        if let Some(header) = bytes.first_chunk().map(DatagramHeader::decode)
            && header.magic == MAGIC
            && header.length() == bytes.len()
            && bytes.len() <= DATAGRAM_BYTES_MAX
            && let Some(opcode) = DatagramOpcode::from_byte(header.opcode)
        {
            return Ok(Self { opcode, bytes });
        }
        Err(fault_of(bytes))
    }

    /// What follows the header.
    #[inline]
    pub fn body(&self) -> &'a [u8] {
        self.bytes.get(DATAGRAM_HEADER_BYTES..).unwrap_or_default()
    }
}

/// What is wrong with bytes that are no datagram; apart, so that the way of the sound ones is short.
#[cold]
fn fault_of(bytes: &[u8]) -> DatagramFault {
    let Some(header) = bytes.first_chunk().map(DatagramHeader::decode) else {
        return DatagramFault::Short;
    };
    if header.magic != MAGIC {
        return DatagramFault::BadMagic { got: header.magic };
    }
    if header.length() != bytes.len() || bytes.len() > DATAGRAM_BYTES_MAX {
        return DatagramFault::BadLength { got: bytes.len() };
    }
    DatagramFault::UnknownOpcode { got: header.opcode }
}

/// Why bytes are not a datagram of this protocol. None of these is ever answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DatagramFault {
    /// There is not even a header.
    #[error("datagram is shorter than its header")]
    Short,
    /// The first byte is not the magic of the protocol.
    #[error("magic is 0x{got:02x}, expected 0xa1")]
    BadMagic {
        /// The byte found.
        got: u8,
    },
    /// The length in the header is not that of the datagram, or over the limit.
    #[error("datagram of {got} bytes is not as long as it says, or over the limit")]
    BadLength {
        /// Bytes that arrived; what was cut off is not among them.
        got: usize,
    },
    /// The opcode is not one of a datagram.
    #[error("opcode 0x{got:02x} is unknown")]
    UnknownOpcode {
        /// The byte found.
        got: u8,
    },
    /// A heartbeat of a layout that this version does not know.
    #[error("heartbeat version {got} is unknown")]
    UnknownVersion {
        /// The version found.
        got: u8,
    },
    /// The fields of the body do not follow their layout.
    #[error("malformed body")]
    BadBody,
}
