//! Durations and sizes as people write them: `250ms`, `5s`, `2m`; `512`, `64KiB`, `8MiB`.

use std::time::Duration;

/// Why a quantity could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// No number in front.
    #[error("'{0}' does not start with a whole number")]
    Number(String),
    /// The unit is missing or unknown.
    #[error("'{text}' needs a unit: {units}")]
    Unit {
        /// What was given.
        text: String,
        /// What would do.
        units: &'static str,
    },
    /// Too large for what it measures.
    #[error("'{0}' is too large")]
    TooLarge(String),
}

/// Reads a duration: a whole number and `us`, `ms`, `s`, `m` or `h`.
pub fn parse_duration(text: &str) -> Result<Duration, QuantityError> {
    let (number, unit) = split(text)?;
    let microseconds_each: u64 = match unit {
        "us" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        _ => {
            return Err(QuantityError::Unit {
                text: text.to_owned(),
                units: "us, ms, s, m or h, as in 1500ms",
            });
        }
    };
    number
        .checked_mul(microseconds_each)
        .map(Duration::from_micros)
        .ok_or_else(|| QuantityError::TooLarge(text.to_owned()))
}

/// Reads a size in bytes: a whole number and nothing, `KiB`, `MiB` or `GiB`.
pub fn parse_bytes(text: &str) -> Result<u64, QuantityError> {
    let (number, unit) = split(text)?;
    let bytes_each: u64 = match unit {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => {
            return Err(QuantityError::Unit {
                text: text.to_owned(),
                units: "KiB, MiB, GiB or none for bytes",
            });
        }
    };
    number
        .checked_mul(bytes_each)
        .ok_or_else(|| QuantityError::TooLarge(text.to_owned()))
}

fn split(text: &str) -> Result<(u64, &str), QuantityError> {
    let text = text.trim();
    let digits = text
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    if number.is_empty() {
        return Err(QuantityError::Number(text.to_owned()));
    }
    match number.parse() {
        Ok(number) => Ok((number, unit.trim_start())),
        Err(_) => Err(QuantityError::TooLarge(text.to_owned())),
    }
}

#[cfg(test)]
mod tests;
