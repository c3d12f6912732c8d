//! Identities and positions as types of their own, so that two of them cannot be exchanged by
//! mistake.

use std::fmt;
use std::str::FromStr;

/// Declares a `Copy` wrapper around an integer with `new`, `get` and a decimal `Display`.
macro_rules! number {
    ($(#[$attribute:meta])* $name:ident($inner:ty)) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name($inner);

        impl $name {
            /// Wraps a raw number.
            pub const fn new(number: $inner) -> Self {
                Self(number)
            }

            /// The raw number.
            pub const fn get(self) -> $inner {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(formatter)
            }
        }
    };
}

number! {
    /// A node of the cluster. Ids are given out by the cluster and never reused.
    NodeId(u16)
}
number! {
    /// A Raft group: one replicated log and the state that grows from it.
    GroupId(u32)
}
number! {
    /// A Raft term.
    Term(u64)
}
number! {
    /// When a key was last written, as a total order over all writes of a group; 0 means that the
    /// key is absent.
    ///
    /// A command's revision is `base + (log index << 16 | position in the entry)`. Entry 0 is the
    /// bootstrap membership, so every revision of a user's write is at least 65,536.
    Revision(u64)
}
number! {
    /// The number of a sub-batch within one boot of one node; the first one is 1.
    BatchNumber(u64)
}
number! {
    /// A point of replicated time: Unix milliseconds that a majority of the voters' clocks have
    /// passed.
    StampMillis(u64)
}

impl Revision {
    /// The revision of a key that does not exist.
    pub const ABSENT: Self = Self(0);
}

impl BatchNumber {
    /// The first batch of a boot.
    pub const FIRST: Self = Self(1);

    /// The number after this one; the last number is its own successor, which no boot lives to
    /// reach.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// A client session, chosen at random by the client. All zeros means that the command belongs to no
/// session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId([u8; 16]);

impl ClientId {
    /// No session: the command is executed at most once by the sub-batch that carries it.
    pub const NONE: Self = Self([0; 16]);

    /// Wraps raw bytes.
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The raw bytes.
    pub const fn get(self) -> [u8; 16] {
        self.0
    }
}

/// The identity of a cluster: 16 random bytes that also stand in every certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterId([u8; 16]);

impl ClusterId {
    /// Wraps raw bytes.
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The raw bytes.
    pub const fn get(self) -> [u8; 16] {
        self.0
    }
}

impl fmt::Display for ClusterId {
    /// Writes 32 lower-case hexadecimal digits.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// A text that is not 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a cluster id is 32 hexadecimal digits")]
pub struct ParseClusterIdError;

impl FromStr for ClusterId {
    type Err = ParseClusterIdError;

    fn from_str(text: &str) -> Result<Self, ParseClusterIdError> {
        if text.len() != 32 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(ParseClusterIdError);
        }
        let number = u128::from_str_radix(text, 16).map_err(|_| ParseClusterIdError)?;
        Ok(Self(number.to_be_bytes()))
    }
}

/// The hash of everything that a replica has applied so far, and of what it answered.
///
/// Two replicas that have applied the same entries have equal hashes; a difference at one index
/// means that one of them is broken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ChainHash(u128);

impl ChainHash {
    /// The hash before the first entry.
    pub const START: Self = Self(0);

    /// Wraps a raw hash.
    pub const fn new(hash: u128) -> Self {
        Self(hash)
    }

    /// The raw hash.
    pub const fn get(self) -> u128 {
        self.0
    }
}

impl fmt::Display for ChainHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:032x}", self.0)
    }
}
