//! The fixed sixteen bytes in front of every frame, big endian.

use crate::RequestId;

/// First byte of every frame.
pub const MAGIC: u8 = 0xA1;

/// Length of a header, of requests and responses alike.
pub const HEADER_BYTES: usize = 16;

/// A request header, read but not yet judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    /// First byte; [`MAGIC`] in a sound stream.
    pub magic: u8,
    /// Opcode byte, without the response bit.
    pub opcode: u8,
    /// Flags; none is defined.
    pub flags: u16,
    /// Id that the reply repeats.
    pub id: RequestId,
    /// Length of the key.
    pub key_bytes: u16,
    /// Length of the options.
    pub extra_bytes: u16,
    /// Length of the value.
    pub value_bytes: u32,
}

impl RequestHeader {
    /// Reads the fields; any sixteen bytes are a header.
    #[inline]
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Self {
        let word = u128::from_be_bytes(*bytes);
        Self {
            magic: byte(word >> 120),
            opcode: byte(word >> 112),
            flags: half(word >> 96),
            id: RequestId::new(quad(word >> 64)),
            key_bytes: half(word >> 48),
            extra_bytes: half(word >> 32),
            value_bytes: quad(word),
        }
    }

    /// Writes the fields.
    #[inline]
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        pack(
            [self.magic, self.opcode],
            self.flags.to_be_bytes(),
            self.id,
            self.key_bytes,
            self.extra_bytes,
            self.value_bytes,
        )
    }

    /// Length of the whole frame, header included. Cannot overflow: the parts are at most 32 bits.
    #[inline]
    pub fn frame_bytes(&self) -> u64 {
        frame_bytes(self.key_bytes, self.extra_bytes, self.value_bytes)
    }
}

/// A response header, read but not yet judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHeader {
    /// First byte; [`MAGIC`] in a sound stream.
    pub magic: u8,
    /// Opcode byte, with the response bit.
    pub opcode: u8,
    /// Status byte.
    pub status: u8,
    /// Flags; bit 0 is [`ResponseHeader::FLAG_MORE`].
    pub flags: u8,
    /// Id of the request.
    pub id: RequestId,
    /// Length of the key field.
    pub key_bytes: u16,
    /// Length of the typed fields.
    pub extra_bytes: u16,
    /// Length of the value.
    pub value_bytes: u32,
}

impl ResponseHeader {
    /// More frames follow in answer to the same request.
    pub const FLAG_MORE: u8 = 0x01;

    /// Reads the fields; any sixteen bytes are a header.
    #[inline]
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Self {
        let word = u128::from_be_bytes(*bytes);
        Self {
            magic: byte(word >> 120),
            opcode: byte(word >> 112),
            status: byte(word >> 104),
            flags: byte(word >> 96),
            id: RequestId::new(quad(word >> 64)),
            key_bytes: half(word >> 48),
            extra_bytes: half(word >> 32),
            value_bytes: quad(word),
        }
    }

    /// Writes the fields.
    #[inline]
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        pack(
            [self.magic, self.opcode],
            [self.status, self.flags],
            self.id,
            self.key_bytes,
            self.extra_bytes,
            self.value_bytes,
        )
    }

    /// Length of the whole frame, header included. Cannot overflow: the parts are at most 32 bits.
    #[inline]
    pub fn frame_bytes(&self) -> u64 {
        frame_bytes(self.key_bytes, self.extra_bytes, self.value_bytes)
    }
}

fn frame_bytes(key_bytes: u16, extra_bytes: u16, value_bytes: u32) -> u64 {
    16 + u64::from(key_bytes) + u64::from(extra_bytes) + u64::from(value_bytes)
}

fn pack(
    [magic, opcode]: [u8; 2],
    [third, fourth]: [u8; 2],
    id: RequestId,
    key_bytes: u16,
    extra_bytes: u16,
    value_bytes: u32,
) -> [u8; HEADER_BYTES] {
    let [i0, i1, i2, i3] = id.get().to_be_bytes();
    let [k0, k1] = key_bytes.to_be_bytes();
    let [e0, e1] = extra_bytes.to_be_bytes();
    let [v0, v1, v2, v3] = value_bytes.to_be_bytes();
    [
        magic, opcode, third, fourth, i0, i1, i2, i3, k0, k1, e0, e1, v0, v1, v2, v3,
    ]
}

// The header is read as one 128-bit word and its fields are cut out by shift and mask: the
// compiler makes two loads of it. Cutting off the upper bits is the purpose of these three.

#[expect(clippy::cast_possible_truncation, reason = "takes the low 8 bits")]
const fn byte(word: u128) -> u8 {
    word as u8
}

#[expect(clippy::cast_possible_truncation, reason = "takes the low 16 bits")]
const fn half(word: u128) -> u16 {
    word as u16
}

#[expect(clippy::cast_possible_truncation, reason = "takes the low 32 bits")]
const fn quad(word: u128) -> u32 {
    word as u32
}
