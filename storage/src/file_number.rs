//! Numbers of the files of a database, never reused: one counter for the write-ahead log, another
//! for tables and manifests.

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

    /// The name of a manifest with this number.
    pub(crate) fn manifest_name(self) -> String {
        format!("MANIFEST-{:06}", self.0)
    }

    /// The number, if a file can have it.
    pub(crate) fn from_encoded(number: u64) -> Option<Self> {
        (number != 0 && number <= NUMBER_MAX).then_some(Self(number))
    }

    /// The number of a write-ahead log file with this name.
    pub(crate) fn from_wal_name(name: &str) -> Option<Self> {
        Self::from_digits(name.strip_suffix(".wal")?).filter(|number| number.wal_name() == name)
    }

    /// The number of an sstable with this name.
    pub(crate) fn from_sstable_name(name: &str) -> Option<Self> {
        Self::from_digits(name.strip_suffix(".sst")?).filter(|number| number.sstable_name() == name)
    }

    /// The number of a manifest with this name.
    pub(crate) fn from_manifest_name(name: &str) -> Option<Self> {
        Self::from_digits(name.strip_prefix("MANIFEST-")?)
            .filter(|number| number.manifest_name() == name)
    }

    fn from_digits(digits: &str) -> Option<Self> {
        Self::from_encoded(digits.parse().ok()?)
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
            let (table, manifest) = (number.sstable_name(), number.manifest_name());
            assert_eq!(FileNumber::from_sstable_name(&table), Some(number));
            assert_eq!(FileNumber::from_manifest_name(&manifest), Some(number));
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
