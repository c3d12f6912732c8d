//! The total order of the writes of one keyspace.
//!
//! Operation `k` of a batch gets the batch's first number plus `k`, so every state between two
//! operations has a name, also in the middle of a batch.

use std::fmt;

/// The position of one operation in the total order of a keyspace's writes; 0 is the state before
/// the first one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SequenceNumber(u64);

impl SequenceNumber {
    /// The state before the first operation.
    pub const ZERO: Self = Self(0);

    /// The largest number. Internal keys keep it in 56 bits beside an 8-bit kind; at ten million
    /// operations a second it lasts for two centuries.
    pub const MAX: Self = Self((1 << 56) - 1);

    /// Wraps `number`.
    ///
    /// # Panics
    /// If `number` is above [`SequenceNumber::MAX`].
    pub const fn new(number: u64) -> Self {
        assert!(number <= Self::MAX.0, "a sequence number has 56 bits");
        Self(number)
    }

    /// The number that was encoded, if it is one.
    pub(crate) fn from_encoded(number: u64) -> Option<Self> {
        (number <= Self::MAX.0).then_some(Self(number))
    }

    /// The bare number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number `count` operations later.
    ///
    /// # Panics
    /// If that is above [`SequenceNumber::MAX`].
    #[must_use]
    pub const fn advanced_by(self, count: u64) -> Self {
        Self::new(self.0.saturating_add(count))
    }
}

impl fmt::Display for SequenceNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}
