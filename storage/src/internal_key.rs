//! The order of versions, shared by memtables and sstables: user key ascending, then newest first.

use std::cmp::Ordering;

use crate::sequence_number::SequenceNumber;

/// What a version did; its number is the low byte of the trailer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A tombstone.
    Delete = 0,
    /// A value.
    Put = 1,
}

impl Kind {
    /// The kind with this number.
    pub(crate) const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Delete),
            1 => Some(Self::Put),
            _ => None,
        }
    }
}

/// A sequence number and a kind in one word: `sequence << 8 | kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Trailer(u64);

impl Trailer {
    /// Sorts before every version of its key.
    pub(crate) const BEFORE_ALL: Self = Self(u64::MAX);
    /// Sorts after every version of its key: no tombstone has sequence number 0.
    pub(crate) const AFTER_ALL: Self = Self(0);

    /// The trailer of a version.
    pub(crate) fn new(sequence: SequenceNumber, kind: Kind) -> Self {
        Self(sequence.get() << 8 | kind as u64)
    }

    /// Sorts directly before the newest version at or below `sequence`.
    pub(crate) fn newest_at(sequence: SequenceNumber) -> Self {
        Self(sequence.get() << 8 | 0xFF)
    }

    /// The trailer that was encoded as `sequence` and `kind`.
    pub(crate) fn from_encoded(sequence: u64, kind: u8) -> Option<Self> {
        let kind = Kind::from_number(kind)?;
        (sequence <= SequenceNumber::MAX.get())
            .then(|| Self::new(SequenceNumber::new(sequence), kind))
    }

    /// The sequence number.
    pub(crate) fn sequence(self) -> SequenceNumber {
        SequenceNumber::new(self.0 >> 8)
    }

    /// The kind. Every number but that of a delete is a put: trailers of versions are made by
    /// [`Trailer::new`] and [`Trailer::from_encoded`] only.
    pub(crate) fn kind(self) -> Kind {
        if self.0 & 0xFF == Kind::Delete as u64 {
            Kind::Delete
        } else {
            Kind::Put
        }
    }
}

/// The order of two versions, each a user key and its trailer.
#[inline]
pub(crate) fn compare(left: (&[u8], Trailer), right: (&[u8], Trailer)) -> Ordering {
    left.0.cmp(right.0).then_with(|| right.1.cmp(&left.1))
}
