//! Ties checksums to their file and place, so that bytes from elsewhere never pass for these.

use crc32fast::Hasher;

use crate::file_number::FileNumber;
use crate::identity::DatabaseId;

/// What ties checksums to one file of one database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Salt(u32);

impl Salt {
    pub(crate) fn new(database: DatabaseId, number: FileNumber) -> Self {
        let mut hasher = Hasher::new();
        hasher.update(database.as_bytes());
        hasher.update(&number.get().to_le_bytes());
        Self(hasher.finalize())
    }

    /// The salt that a file keeps.
    pub(crate) const fn from_number(number: u32) -> Self {
        Self(number)
    }

    /// The bare number.
    pub(crate) const fn get(self) -> u32 {
        self.0
    }

    /// Ties `check` to the place `offset` of the file.
    pub(crate) fn apply(self, check: u32, offset: u64) -> u32 {
        let place = (u64::from(self.0) << 32) ^ offset;
        let mixed = place.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        check ^ u32::try_from(mixed).expect("the shift leaves 32 bits")
    }
}
