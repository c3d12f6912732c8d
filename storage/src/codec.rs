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
