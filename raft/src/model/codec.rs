//! Reading bounded, big-endian formats without trusting a single byte of them.
//!
//! A decoder takes a `&[u8]`, checks every length before it uses it, and allocates at most a small
//! multiple of its input. Formats that keep their bytes turn the borrowed parts into slices of the
//! original `Bytes`.

use bytes::Bytes;

/// Bytes that do not follow the format they should.
///
/// From the log or the state it means corruption or a newer version; from a peer, a broken peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The version is not one that this program reads.
    #[error("unknown version {version} of {what}")]
    Version {
        /// The format.
        what: &'static str,
        /// The version that was found.
        version: u8,
    },
    /// A part is not as the format says.
    #[error("{what} is malformed")]
    Malformed {
        /// The part.
        what: &'static str,
    },
}

impl DecodeError {
    pub(crate) const fn malformed(what: &'static str) -> Self {
        Self::Malformed { what }
    }
}

/// The unread rest of an encoded thing.
#[derive(Clone, Copy)]
pub(crate) struct SliceReader<'a> {
    rest: &'a [u8],
    what: &'static str,
}

impl<'a> SliceReader<'a> {
    /// Starts to read `bytes`, which are a `what` in error messages.
    pub(crate) const fn new(bytes: &'a [u8], what: &'static str) -> Self {
        Self { rest: bytes, what }
    }

    pub(crate) const fn malformed(&self) -> DecodeError {
        DecodeError::malformed(self.what)
    }

    pub(crate) const fn remaining(&self) -> usize {
        self.rest.len()
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(self.malformed())?;
        self.rest = rest;
        Ok(*head)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, DecodeError> {
        Ok(u8::from_be_bytes(self.array()?))
    }

    pub(crate) fn u16(&mut self) -> Result<u16, DecodeError> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, DecodeError> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, DecodeError> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    pub(crate) fn u128(&mut self) -> Result<u128, DecodeError> {
        Ok(u128::from_be_bytes(self.array()?))
    }

    /// A `u32` that counts things in memory.
    pub(crate) fn length(&mut self) -> Result<usize, DecodeError> {
        usize::try_from(self.u32()?).map_err(|_| self.malformed())
    }

    /// The next `length` bytes.
    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let (head, rest) = self.rest.split_at_checked(length).ok_or(self.malformed())?;
        self.rest = rest;
        Ok(head)
    }

    /// Everything that is left.
    pub(crate) const fn take_rest(&mut self) -> &'a [u8] {
        let rest = self.rest;
        self.rest = &[];
        rest
    }

    /// Checks that nothing is left over.
    pub(crate) fn finish(self) -> Result<(), DecodeError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(self.malformed())
        }
    }
}

/// `part`, which was read from `whole`, as a slice that shares its memory.
pub(crate) fn shared(whole: &Bytes, part: &[u8]) -> Bytes {
    if part.is_empty() {
        Bytes::new()
    } else {
        whole.slice_ref(part)
    }
}

/// A length as the `u32` of the formats.
///
/// # Panics
/// If the length is over 4 GiB, which every format's own limit excludes.
pub(crate) fn length_u32(length: usize) -> u32 {
    u32::try_from(length).expect("lengths are bounded by the limits of the formats")
}
