//! What a request asks for, as one byte.

/// The opcodes that this version serves. A reply carries the same byte with the high bit set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Opcode {
    /// Send the value back.
    Echo = 0x01,
    /// Set a key.
    Put = 0x02,
    /// Read a key.
    Get = 0x03,
    /// Remove a key.
    Delete = 0x04,
    /// Read a range of keys in order, by pages.
    Scan = 0x07,
    /// Say who speaks and which version; the first frame of a connection.
    Hello = 0x08,
    /// Describe the cluster as this node sees it, in JSON.
    Status = 0x10,
}

impl Opcode {
    /// The bit that a response sets in the opcode of its request.
    pub const RESPONSE_BIT: u8 = 0x80;

    /// The opcode in an error frame about a request whose opcode is not known.
    pub const UNKNOWN: u8 = 0x7F;

    /// Every opcode, in order of its number.
    pub const ALL: [Self; 7] = [
        Self::Echo,
        Self::Put,
        Self::Get,
        Self::Delete,
        Self::Scan,
        Self::Hello,
        Self::Status,
    ];

    /// The opcode of a request byte, unless this version does not serve it.
    pub const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            0x01 => Self::Echo,
            0x02 => Self::Put,
            0x03 => Self::Get,
            0x04 => Self::Delete,
            0x07 => Self::Scan,
            0x08 => Self::Hello,
            0x10 => Self::Status,
            _ => return None,
        })
    }

    /// The byte of a request.
    pub const fn to_byte(self) -> u8 {
        self as u8
    }

    /// The byte that a reply to a request of byte `request` carries.
    pub const fn response_byte(request: u8) -> u8 {
        match Self::from_byte(request) {
            Some(opcode) => opcode.to_byte() | Self::RESPONSE_BIT,
            None => Self::UNKNOWN | Self::RESPONSE_BIT,
        }
    }

    /// A short stable name for logs and metric labels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Echo => "echo",
            Self::Put => "put",
            Self::Get => "get",
            Self::Delete => "delete",
            Self::Scan => "scan",
            Self::Hello => "hello",
            Self::Status => "status",
        }
    }
}
