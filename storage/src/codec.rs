//! Little-endian pieces of the durable formats.
//!
//! [`Reader`] answers nothing instead of panicking when bytes are missing; [`Small`] holds an
//! encoded record on the stack.

/// Takes values off the front of a slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// What is left.
    pub(crate) const fn rest(self) -> &'a [u8] {
        self.0
    }

    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A number written by [`push_varint`]; none when it does not end or is over 64 bits.
    #[inline]
    pub(crate) fn varint(&mut self) -> Option<u64> {
        let (&first, rest) = self.0.split_first()?;
        if first < 0x80 {
            self.0 = rest;
            return Some(u64::from(first));
        }
        self.long_varint()
    }

    /// A field written by [`push_field`]; none when it is cut off.
    pub(crate) fn field(&mut self) -> Option<(u64, &'a [u8])> {
        let (tag, length) = (self.varint()?, self.varint()?);
        if length > long(self.0.len()) {
            return None;
        }
        Some((tag, self.take(index(length))?))
    }

    /// Bytes behind their length as u32; none when there are fewer, or more than `bytes_max`.
    pub(crate) fn bytes32(&mut self, bytes_max: usize) -> Option<&'a [u8]> {
        let length = index(u64::from(self.u32()?));
        (length <= bytes_max).then(|| self.take(length))?
    }

    fn long_varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7F);
            if shift == 63 && bits > 1 {
                return None;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }
}

/// Up to `N` bytes, kept on the stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Small<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> Small<N> {
    pub(crate) const fn new() -> Self {
        Self {
            bytes: [0; N],
            length: 0,
        }
    }

    /// # Panics
    /// When the bytes do not fit: the caller's layout is larger than its buffer.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        self.bytes[self.length..end].copy_from_slice(bytes);
        self.length = end;
    }

    pub(crate) fn push_u8(&mut self, value: u8) {
        self.push(&[value]);
    }

    pub(crate) fn push_u32(&mut self, value: u32) {
        self.push(&value.to_le_bytes());
    }

    pub(crate) fn push_u64(&mut self, value: u64) {
        self.push(&value.to_le_bytes());
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Appends `value` in groups of seven bits, lowest first; all but the last have the high bit set.
pub(crate) fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let [low, ..] = value.to_le_bytes();
        value >>= 7;
        if value == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

/// Appends `value` behind its tag and its length.
pub(crate) fn push_field(out: &mut Vec<u8>, tag: u64, value: &[u8]) {
    push_varint(out, tag);
    push_varint(out, long(value.len()));
    out.extend_from_slice(value);
}

/// Appends `bytes` behind their length as u32; a limit far below 4 GiB was checked before.
pub(crate) fn push_bytes32(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&short(bytes.len()).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// A length as it is counted in files.
pub(crate) fn long(length: usize) -> u64 {
    u64::try_from(length).expect("a length fits 64 bits")
}

/// A length below a limit that was checked before.
pub(crate) fn short(length: usize) -> u32 {
    u32::try_from(length).expect("the length is bounded by a limit far below 4 GiB")
}

/// A distance between two places that are both in memory.
pub(crate) fn index(distance: u64) -> usize {
    usize::try_from(distance).expect("a distance within a buffer fits the address space")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_varint_gives_its_number_back(value: u64, bits in 0..64_u32) {
            let value = value >> bits;
            let mut bytes = Vec::new();
            push_varint(&mut bytes, value);
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(reader.varint(), Some(value));
            prop_assert!(reader.rest().is_empty());
        }

        #[test]
        fn a_varint_of_arbitrary_bytes_never_panics(bytes: [u8; 12], length in 0..=12_usize) {
            let _ = Reader::new(&bytes[..length]).varint();
        }
    }

    #[test]
    fn a_varint_over_64_bits_is_none() {
        let mut bytes = vec![0xFF; 9];
        bytes.push(1);
        assert_eq!(Reader::new(&bytes).varint(), Some(u64::MAX));
        bytes[9] = 2;
        assert_eq!(Reader::new(&bytes).varint(), None);
        bytes[9] = 0x81;
        bytes.push(0);
        assert_eq!(Reader::new(&bytes).varint(), None);
    }
}
