//! Frames of the peer protocol: big endian, length first, every length checked before anything is
//! allocated.
//!
//! Layouts are drawn in `docs/formats/peer.md`, part 1.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kelp_raft::{Boot, ClusterId, DatabaseId, NodeId, PeerClass};

/// Largest value of a frame's length field. The largest request is a log entry of one command (9
/// MiB) or a WAL-sized batch of entries (16 MiB); one more MiB covers envelopes.
pub const FRAME_BYTES_MAX: usize = 17 * 1024 * 1024;

/// Largest frame before the peer is known: a hello, welcome or refusal with room to grow.
pub(super) const GREETING_BYTES_MAX: usize = 1024;

/// Version of frames and greetings that this program speaks.
pub(super) const VERSION: u8 = 1;

/// Bytes of the length field, which does not count itself.
const LENGTH_BYTES: usize = 4;

/// Bytes of kind and id, which the length field counts.
const PREFIX_BYTES: usize = 1 + 8;

/// Bytes of a frame before its payload.
pub(super) const HEADER_BYTES: usize = LENGTH_BYTES + PREFIX_BYTES;

/// First bytes of a hello, so that another protocol is recognized at once.
const MAGIC: [u8; 4] = *b"KLPP";

const HELLO_BYTES: usize = 4 + 1 + 1 + 1 + 1 + 16 + 2 + 2 + 8 + 16;
const WELCOME_BYTES: usize = 1 + 16 + 2 + 8 + 16;

/// Longest text of a refusal in bytes; it is a sentence for a log.
const REFUSAL_TEXT_BYTES_MAX: usize = 512;

const _: () = assert!(HEADER_BYTES + HELLO_BYTES <= GREETING_BYTES_MAX);
const _: () = assert!(PREFIX_BYTES + 1 + REFUSAL_TEXT_BYTES_MAX <= GREETING_BYTES_MAX);

/// What a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameKind {
    /// First frame of the dialling side: a [`Hello`].
    Hello = 1,
    /// First frame of the accepting side: a [`Welcome`].
    Welcome = 2,
    /// First and last frame of the accepting side, or last one of the dialling side: a [`Refusal`].
    Refusal = 3,
    /// A request; its id is unique on the connection.
    Request = 4,
    /// The reply to the request with the same id.
    Reply = 5,
    /// Asks for a pong with the same id; no payload.
    Ping = 6,
    /// Answers a ping.
    Pong = 7,
}

impl FrameKind {
    fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::Hello,
            2 => Self::Welcome,
            3 => Self::Refusal,
            4 => Self::Request,
            5 => Self::Reply,
            6 => Self::Ping,
            7 => Self::Pong,
            _ => return None,
        })
    }
}

/// One frame as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What it is for.
    pub kind: FrameKind,
    /// Matches replies to requests and pongs to pings; 0 in greetings.
    pub id: u64,
    /// The rest.
    pub payload: Bytes,
}

/// Why bytes from a peer are not a frame. Every one of these closes the connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The length field is over the limit.
    #[error("frame of {length} bytes is over the limit of {max}")]
    TooLong {
        /// What the length field says.
        length: usize,
        /// The limit at this point of the connection.
        max: usize,
    },
    /// The length field is too small for kind and id.
    #[error("frame of {length} bytes is too short")]
    TooShort {
        /// What the length field says.
        length: usize,
    },
    /// The kind is not known to this version.
    #[error("frame kind {0} is unknown")]
    UnknownKind(u8),
    /// A known kind at the wrong place.
    #[error("unexpected {0:?} frame")]
    Unexpected(FrameKind),
    /// A hello that does not begin with the magic bytes.
    #[error("hello does not begin with the magic bytes")]
    BadMagic,
    /// A greeting that ends too early.
    #[error("{kind:?} of {length} bytes is truncated")]
    Truncated {
        /// Which greeting.
        kind: FrameKind,
        /// Its payload length.
        length: usize,
    },
    /// A connection class that this version does not know.
    #[error("connection class {0} is unknown")]
    UnknownClass(u8),
}

/// Takes one whole frame off the front of `input`, or `None` when more bytes are needed.
///
/// `length_max` bounds the length field. Nothing is allocated; the payload shares the buffer.
pub fn decode_frame(input: &mut BytesMut, length_max: usize) -> Result<Option<Frame>, FrameError> {
    let Some(length) = peek_length(input, length_max)? else {
        return Ok(None);
    };
    if input.len() < LENGTH_BYTES + length {
        return Ok(None);
    }
    let mut frame = input.split_to(LENGTH_BYTES + length).freeze();
    frame.advance(LENGTH_BYTES);
    let code = frame.get_u8();
    let kind = FrameKind::from_code(code).ok_or(FrameError::UnknownKind(code))?;
    let id = frame.get_u64();
    let payload = frame;
    Ok(Some(Frame { kind, id, payload }))
}

/// The length field at the front of `input`, checked; `None` when it is not there yet.
fn peek_length(input: &BytesMut, length_max: usize) -> Result<Option<usize>, FrameError> {
    let Some(field) = input.first_chunk::<LENGTH_BYTES>() else {
        return Ok(None);
    };
    let length = usize::try_from(u32::from_be_bytes(*field)).unwrap_or(usize::MAX);
    if length > length_max {
        let max = length_max;
        return Err(FrameError::TooLong { length, max });
    }
    if length < PREFIX_BYTES {
        return Err(FrameError::TooShort { length });
    }
    Ok(Some(length))
}

/// How many bytes of the frame at the front of `input` are still missing, as far as its length
/// field is known.
pub(super) fn bytes_missing(input: &BytesMut) -> usize {
    let Some(field) = input.first_chunk::<LENGTH_BYTES>() else {
        return LENGTH_BYTES - input.len();
    };
    let length = usize::try_from(u32::from_be_bytes(*field)).unwrap_or(usize::MAX);
    length
        .saturating_add(LENGTH_BYTES)
        .saturating_sub(input.len())
}

/// Writes the header of a frame whose payload of `payload_bytes` follows.
///
/// # Panics
///
/// When the payload is over the limit; callers refuse it before.
pub(super) fn put_header(output: &mut BytesMut, kind: FrameKind, id: u64, payload_bytes: usize) {
    let length = payload_bytes + PREFIX_BYTES;
    assert!(length <= FRAME_BYTES_MAX, "frame of {length} bytes");
    output.put_u32(u32::try_from(length).expect("the limit fits into 32 bits"));
    output.put_u8(kind as u8);
    output.put_u64(id);
}

/// Whether a payload of this size fits into one frame.
pub(super) fn payload_fits(payload_bytes: usize) -> bool {
    payload_bytes <= FRAME_BYTES_MAX - PREFIX_BYTES
}

/// What the dialling side says first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Lowest version that it speaks.
    pub version_min: u8,
    /// Highest version that it speaks.
    pub version_max: u8,
    /// What the connection is for.
    pub class: PeerClass,
    /// Its cluster.
    pub cluster: ClusterId,
    /// Itself.
    pub node: NodeId,
    /// Whom it means to reach.
    pub target: NodeId,
    /// Its boot.
    pub boot: Boot,
    /// Its data directory.
    pub directory: DatabaseId,
}

impl Hello {
    /// Appends the payload of a hello frame.
    pub fn encode(&self, output: &mut BytesMut) {
        output.put_slice(&MAGIC);
        output.put_u8(self.version_min);
        output.put_u8(self.version_max);
        output.put_u8(class_code(self.class));
        output.put_u8(0);
        output.put_slice(&self.cluster.get());
        output.put_u16(self.node.get());
        output.put_u16(self.target.get());
        output.put_u64(self.boot.get());
        output.put_slice(self.directory.as_bytes());
    }

    /// Reads the payload of a hello frame. Bytes after the known fields are a later version's and
    /// are skipped.
    pub fn decode(payload: &[u8]) -> Result<Self, FrameError> {
        if payload.first_chunk::<4>() != Some(&MAGIC) {
            return Err(FrameError::BadMagic);
        }
        if payload.len() < HELLO_BYTES {
            let (kind, length) = (FrameKind::Hello, payload.len());
            return Err(FrameError::Truncated { kind, length });
        }
        let mut rest = &payload[MAGIC.len()..];
        let version_min = rest.get_u8();
        let version_max = rest.get_u8();
        let code = rest.get_u8();
        let class = class_from_code(code).ok_or(FrameError::UnknownClass(code))?;
        rest.advance(1);
        Ok(Self {
            version_min,
            version_max,
            class,
            cluster: ClusterId::new(take_id(&mut rest)),
            node: NodeId::new(rest.get_u16()),
            target: NodeId::new(rest.get_u16()),
            boot: Boot::new(rest.get_u64()),
            directory: DatabaseId::from_bytes(take_id(&mut rest)),
        })
    }
}

/// What the accepting side answers to a hello that it likes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// The version that both sides use from here on.
    pub version: u8,
    /// Its cluster.
    pub cluster: ClusterId,
    /// Itself.
    pub node: NodeId,
    /// Its boot.
    pub boot: Boot,
    /// Its data directory.
    pub directory: DatabaseId,
}

impl Welcome {
    /// Appends the payload of a welcome frame.
    pub fn encode(&self, output: &mut BytesMut) {
        output.put_u8(self.version);
        output.put_slice(&self.cluster.get());
        output.put_u16(self.node.get());
        output.put_u64(self.boot.get());
        output.put_slice(self.directory.as_bytes());
    }

    /// Reads the payload of a welcome frame; later versions may append to it.
    pub fn decode(payload: &[u8]) -> Result<Self, FrameError> {
        if payload.len() < WELCOME_BYTES {
            let (kind, length) = (FrameKind::Welcome, payload.len());
            return Err(FrameError::Truncated { kind, length });
        }
        let mut rest = payload;
        Ok(Self {
            version: rest.get_u8(),
            cluster: ClusterId::new(take_id(&mut rest)),
            node: NodeId::new(rest.get_u16()),
            boot: Boot::new(rest.get_u64()),
            directory: DatabaseId::from_bytes(take_id(&mut rest)),
        })
    }
}

/// Refusals that the refused node acts upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RefusalCode {
    /// Only the text tells.
    Other = 0,
    /// The refused node runs on another data directory than it announced.
    Emptied = 1,
}

/// What a side answers to a greeting that it does not like, before it closes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("refused: {text}")]
pub struct Refusal {
    /// What the refused node may do.
    pub code: RefusalCode,
    /// The reason as text, for the log of the other side.
    pub text: String,
}

impl Refusal {
    /// Appends the payload of a refusal frame; a long text is cut.
    pub fn encode(&self, output: &mut BytesMut) {
        let mut end = self.text.len().min(REFUSAL_TEXT_BYTES_MAX);
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        output.put_u8(self.code as u8);
        output.put_slice(&self.text.as_bytes()[..end]);
    }

    /// Reads the payload of a refusal frame. A code of a later version counts as other; control
    /// characters are replaced, since the text goes to a log.
    pub fn decode(payload: &[u8]) -> Self {
        let (code, text) = payload.split_first().unwrap_or((&0, &[]));
        let code = if *code == RefusalCode::Emptied as u8 {
            RefusalCode::Emptied
        } else {
            RefusalCode::Other
        };
        let end = text.len().min(REFUSAL_TEXT_BYTES_MAX);
        let text = String::from_utf8_lossy(&text[..end]);
        let clean = |character: char| {
            if character.is_control() {
                ' '
            } else {
                character
            }
        };
        Self {
            code,
            text: text.chars().map(clean).collect(),
        }
    }
}

fn take_id(rest: &mut &[u8]) -> [u8; 16] {
    let mut id = [0; 16];
    rest.copy_to_slice(&mut id);
    id
}

fn class_code(class: PeerClass) -> u8 {
    match class {
        PeerClass::Control => 1,
        PeerClass::Append => 2,
        PeerClass::Forward => 3,
        PeerClass::Snapshot => 4,
    }
}

fn class_from_code(code: u8) -> Option<PeerClass> {
    Some(match code {
        1 => PeerClass::Control,
        2 => PeerClass::Append,
        3 => PeerClass::Forward,
        4 => PeerClass::Snapshot,
        _ => return None,
    })
}
