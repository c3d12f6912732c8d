//! What can be wrong with bytes, sorted by what the reader must do about it.

use bytes::BytesMut;
use thiserror::Error;

use crate::{HEADER_BYTES, Opcode, RequestHeader, RequestId, ResponseFields, Status, encode_error};

/// The stream cannot be trusted any further.
///
/// A node writes [`FrameError::encode`] once, flushes, and closes; a client closes.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("bad frame: {fault}")]
pub struct FrameError {
    /// The request id that the header named; 0 when not even the magic was right.
    pub id: RequestId,
    /// The opcode byte that the header named; [`Opcode::UNKNOWN`] when the magic was wrong.
    pub opcode: u8,
    /// What is wrong.
    pub fault: FrameFault,
}

impl FrameError {
    /// An error about a stream whose header cannot be believed at all.
    pub(crate) fn without_header(fault: FrameFault) -> Self {
        Self {
            id: RequestId::new(0),
            opcode: Opcode::UNKNOWN,
            fault,
        }
    }

    /// An error about the frame that begins with `bytes`, which may be less than its header.
    pub fn within(bytes: &[u8], fault: FrameFault) -> Self {
        let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Self::without_header(fault);
        };
        let header = RequestHeader::decode(header);
        Self {
            id: header.id,
            opcode: header.opcode,
            fault,
        }
    }

    /// The status that an error frame about this fault carries.
    pub fn status(&self) -> Status {
        match self.fault {
            FrameFault::FrameTooLong { .. } => Status::TooLarge,
            _ => Status::BadRequest,
        }
    }

    /// Appends the one error frame that names the fault.
    pub fn encode(&self, out: &mut BytesMut) {
        let fields = ResponseFields::default();
        encode_error(
            out,
            self.id,
            self.opcode,
            self.status(),
            &fields,
            &self.to_string(),
        );
    }
}

/// Why a frame makes its stream unusable.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FrameFault {
    /// The first byte is not the magic of the protocol.
    #[error("magic is 0x{got:02x}, expected 0xa1")]
    BadMagic {
        /// The byte found.
        got: u8,
    },
    /// A flag bit is set that this version gives no meaning to.
    #[error("unknown flags 0x{got:04x}")]
    UnknownFlags {
        /// All flags of the header.
        got: u16,
    },
    /// The lengths in the header add up to more than the limit.
    #[error("frame of {bytes} bytes is over the limit of {bytes_max}")]
    FrameTooLong {
        /// Length of the whole frame, header included.
        bytes: u64,
        /// The limit in force.
        bytes_max: usize,
    },
    /// The frame that had begun did not become complete in time.
    #[error("no complete frame came within {seconds_max} s")]
    Incomplete {
        /// The limit in force.
        seconds_max: u64,
    },
    /// The connection ended before the frame did.
    #[error("connection ended inside a frame")]
    CutShort,
    /// A response without the response bit, or a request with it.
    #[error("opcode 0x{got:02x} travels in the wrong direction")]
    WrongDirection {
        /// The opcode byte found.
        got: u8,
    },
    /// A response carries a status that this version does not know.
    #[error("unknown status {got}")]
    UnknownStatus {
        /// The status byte found.
        got: u8,
    },
    /// The typed fields of a response are malformed.
    #[error("field 0x{tag:02x} {fault}")]
    BadField {
        /// Tag of the field.
        tag: u8,
        /// What is wrong with it.
        fault: OptionFault,
    },
    /// A part of a response is over its limit or has the wrong shape for its opcode.
    #[error("malformed response body")]
    BadBody,
}

/// One well-framed request cannot be served; the connection goes on.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RequestError {
    /// Keys have at least one byte.
    #[error("key is empty")]
    EmptyKey,
    /// The key, or a bound or cursor of a scan, is over its limit.
    #[error("key of {bytes} bytes is over the limit of {bytes_max}")]
    KeyTooLong {
        /// Length found.
        bytes: usize,
        /// The limit in force.
        bytes_max: usize,
    },
    /// The value is over its limit.
    #[error("value of {bytes} bytes is over the limit of {bytes_max}")]
    ValueTooLong {
        /// Length found.
        bytes: usize,
        /// The limit in force.
        bytes_max: usize,
    },
    /// The options are over their limit.
    #[error("options of {bytes} bytes are over the limit of {bytes_max}")]
    OptionsTooLong {
        /// Length found.
        bytes: usize,
        /// The limit in force.
        bytes_max: usize,
    },
    /// The opcode has no key, or no value, but one was sent.
    #[error("{opcode} takes no {part}", opcode = opcode.name())]
    UnexpectedPart {
        /// Opcode of the request.
        opcode: Opcode,
        /// "key" or "value".
        part: &'static str,
    },
    /// An option is malformed or out of place.
    #[error("option 0x{tag:02x} {fault}")]
    BadOption {
        /// Tag of the option; 0 when the list ends inside an option.
        tag: u8,
        /// What is wrong with it.
        fault: OptionFault,
    },
    /// The option is defined, but this version does not serve it.
    #[error("option 0x{tag:02x} is not supported yet")]
    UnsupportedOption {
        /// Tag of the option.
        tag: u8,
    },
    /// The opcode is reserved or unknown.
    #[error("opcode 0x{opcode:02x} is not supported")]
    UnsupportedOpcode {
        /// The opcode byte.
        opcode: u8,
    },
    /// The value of hello does not follow its layout.
    #[error("hello is malformed")]
    BadHello,
}

impl RequestError {
    /// The status that the reply to the request carries.
    pub fn status(&self) -> Status {
        match self {
            Self::KeyTooLong { .. } | Self::ValueTooLong { .. } | Self::OptionsTooLong { .. } => {
                Status::TooLarge
            }
            Self::UnsupportedOption { .. } | Self::UnsupportedOpcode { .. } => Status::Unsupported,
            Self::EmptyKey
            | Self::UnexpectedPart { .. }
            | Self::BadOption { .. }
            | Self::BadHello => Status::BadRequest,
        }
    }
}

/// What is wrong with a typed option of a request, or a typed field of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OptionFault {
    /// The list ends inside an option.
    #[error("is cut short")]
    Truncated,
    /// The tag has no meaning in this version.
    #[error("is unknown")]
    Unknown,
    /// The tag appears twice.
    #[error("is repeated")]
    Repeated,
    /// The tag means nothing with this opcode.
    #[error("does not belong to this opcode")]
    Misplaced,
    /// The value has the wrong length or content.
    #[error("has a malformed value")]
    BadValue,
}

/// The entries in the value of a scan response do not follow their layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("scan entry is cut short")]
pub struct ScanFault;
