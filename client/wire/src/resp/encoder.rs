//! Replies in either version of the protocol.

use bytes::{BufMut, BytesMut};

/// The version that a connection has agreed on; it begins with 2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RespVersion {
    /// Strings, integers, errors and arrays.
    #[default]
    V2,
    /// With maps, sets, nulls and annotated text of their own.
    V3,
}

impl RespVersion {
    /// The version of a number, if there is one.
    pub fn from_number(number: i64) -> Option<Self> {
        match number {
            2 => Some(Self::V2),
            3 => Some(Self::V3),
            _ => None,
        }
    }

    /// The number of the version.
    pub const fn number(self) -> i64 {
        match self {
            Self::V2 => 2,
            Self::V3 => 3,
        }
    }
}

/// Appends values to a buffer. An array, a map or a set is followed by its elements.
pub struct RespEncoder<'a> {
    out: &'a mut BytesMut,
    version: RespVersion,
}

impl<'a> RespEncoder<'a> {
    /// Appends to `out` in this version.
    pub fn new(out: &'a mut BytesMut, version: RespVersion) -> Self {
        Self { out, version }
    }

    /// A short text, such as `OK`. Line ends in it become spaces.
    pub fn simple(&mut self, text: &str) {
        self.line(b'+', text);
    }

    /// An error: a code in capitals, a space and a sentence. Line ends in it become spaces.
    pub fn error(&mut self, text: &str) {
        self.line(b'-', text);
    }

    /// A whole number.
    pub fn integer(&mut self, value: i64) {
        self.out.put_u8(b':');
        if value < 0 {
            self.out.put_u8(b'-');
        }
        self.digits(value.unsigned_abs());
        self.out.put_slice(b"\r\n");
    }

    /// A count of things in memory.
    pub fn count(&mut self, count: usize) {
        self.head(b':', number(count));
    }

    /// Bytes.
    pub fn bulk(&mut self, value: &[u8]) {
        self.out.reserve(value.len() + 16);
        self.head(b'$', number(value.len()));
        self.out.put_slice(value);
        self.out.put_slice(b"\r\n");
    }

    /// Text for people, in version 3 marked as such.
    pub fn verbatim(&mut self, text: &str) {
        if self.version == RespVersion::V2 {
            return self.bulk(text.as_bytes());
        }
        self.head(b'=', number(text.len() + 4));
        self.out.put_slice(b"txt:");
        self.out.put_slice(text.as_bytes());
        self.out.put_slice(b"\r\n");
    }

    /// Nothing, where a value could be.
    pub fn null(&mut self) {
        self.out.put_slice(match self.version {
            RespVersion::V2 => b"$-1\r\n",
            RespVersion::V3 => b"_\r\n",
        });
    }

    /// The head of so many values in order.
    pub fn array(&mut self, count: usize) {
        self.head(b'*', number(count));
    }

    /// The head of so many pairs of a key and a value; in version 2 an array of them all.
    pub fn map(&mut self, count: usize) {
        match self.version {
            RespVersion::V2 => self.head(b'*', number(count) * 2),
            RespVersion::V3 => self.head(b'%', number(count)),
        }
    }

    /// The head of so many values without order; in version 2 an array.
    pub fn set(&mut self, count: usize) {
        match self.version {
            RespVersion::V2 => self.head(b'*', number(count)),
            RespVersion::V3 => self.head(b'~', number(count)),
        }
    }

    fn line(&mut self, mark: u8, text: &str) {
        self.out.reserve(text.len() + 3);
        self.out.put_u8(mark);
        for byte in text.bytes() {
            self.out.put_u8(match byte {
                b'\r' | b'\n' => b' ',
                byte => byte,
            });
        }
        self.out.put_slice(b"\r\n");
    }

    fn head(&mut self, mark: u8, value: u64) {
        self.out.put_u8(mark);
        self.digits(value);
        self.out.put_slice(b"\r\n");
    }

    fn digits(&mut self, mut value: u64) {
        /// Digits of the largest number.
        const DIGITS_MAX: usize = 20;
        let mut digits = [0; DIGITS_MAX];
        let mut start = DIGITS_MAX;
        loop {
            start -= 1;
            digits[start] = b'0' + u8::try_from(value % 10).expect("a digit fits a byte");
            value /= 10;
            if value == 0 {
                break;
            }
        }
        self.out.put_slice(&digits[start..]);
    }
}

fn number(count: usize) -> u64 {
    u64::try_from(count).expect("a usize fits 64 bits on every supported target")
}
