//! Numbers of the files of a database: one counter for all kinds, never reused.

use std::fmt;

/// Beyond any count of files; a name with a higher number is not ours.
const NUMBER_MAX: u64 = 1 << 62;

/// The number of a file; 0 is no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileNumber(u64);

impl FileNumber {
    pub(crate) const fn new(number: u64) -> Self {
        Self(number)
    }

    pub(crate) const fn get(self) -> u64 {
        self.0
    }

    pub(crate) fn next(self) -> Self {
        Self(self.0.checked_add(1).expect("no database makes 2^64 files"))
    }

    /// The name of a write-ahead log file with this number.
    pub(crate) fn wal_name(self) -> String {
        format!("{:06}.wal", self.0)
    }

    /// The name of an sstable with this number.
    pub(crate) fn sstable_name(self) -> String {
        format!("{:06}.sst", self.0)
    }

    /// The number of a write-ahead log file with this name.
    pub(crate) fn from_wal_name(name: &str) -> Option<Self> {
        let number = Self(name.strip_suffix(".wal")?.parse().ok()?);
        let possible = number.0 != 0 && number.0 <= NUMBER_MAX;
        (possible && number.wal_name() == name).then_some(number)
    }
}

impl fmt::Display for FileNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_give_their_number_back() {
        for number in [1, 42, 999_999, 1_000_000, NUMBER_MAX] {
            let number = FileNumber::new(number);
            assert_eq!(FileNumber::from_wal_name(&number.wal_name()), Some(number));
        }
        for name in [
            "000000.wal",
            "1.wal",
            "0000001.wal",
            "000001.sst",
            ".wal",
            "+00001.wal",
            "18446744073709551615.wal",
        ] {
            assert_eq!(FileNumber::from_wal_name(name), None, "{name}");
        }
    }
}
