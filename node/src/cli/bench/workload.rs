//! What a benchmark asks for: which key next, read or write, which value. Pure and seeded, so that
//! two runs of one seed send the same requests.

use bytes::Bytes;
use clap::ValueEnum;
use kelp_seams::{Rng, SeededRng};

/// How keys are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Distribution {
    /// Every key equally often
    Uniform,
    /// Few keys often, most keys seldom, as in caches (Zipf, exponent 0.99)
    Zipf,
}

impl Distribution {
    /// The word on the command line.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Zipf => "zipf",
        }
    }
}

/// The exponent that YCSB uses, so that figures compare.
const ZIPF_EXPONENT: f64 = 0.99;
/// Values are windows into a random block longer than a value by this, so that they differ and do
/// not compress.
const VALUE_SLACK_BYTES: usize = 64 << 10;

/// The shape of a workload.
#[derive(Clone, Debug)]
pub(crate) struct WorkloadOptions {
    pub(crate) seed: u64,
    pub(crate) keys: u64,
    pub(crate) distribution: Distribution,
    pub(crate) read_percent: u8,
    pub(crate) value_bytes: usize,
    pub(crate) prefix: String,
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Read a key.
    Read {
        /// The key.
        key: Bytes,
    },
    /// Write a key.
    Write {
        /// The key.
        key: Bytes,
        /// The value.
        value: Bytes,
    },
}

/// An endless sequence of requests.
pub(crate) struct Workload {
    options: WorkloadOptions,
    rng: SeededRng,
    zipf: Option<Zipf>,
    block: Bytes,
}

impl Workload {
    /// The sequence of one client; clients of one seed differ by `stream`.
    pub(crate) fn new(options: &WorkloadOptions, stream: u64) -> Self {
        let rng = SeededRng::new(mix(options.seed ^ mix(stream.wrapping_add(1))));
        let mut block = vec![0; options.value_bytes + VALUE_SLACK_BYTES];
        rng.fill(&mut block);
        let zipf = match options.distribution {
            Distribution::Uniform => None,
            Distribution::Zipf => Some(Zipf::new(options.keys)),
        };
        Self {
            options: options.clone(),
            rng,
            zipf,
            block: block.into(),
        }
    }

    /// The next request.
    pub(crate) fn next(&mut self) -> Operation {
        let number = match &self.zipf {
            None => self.rng.next_u64() % self.options.keys,
            // The popular keys lie scattered over the key space, as they do in life.
            Some(zipf) => mix(zipf.rank(fraction(self.rng.next_u64()))) % self.options.keys,
        };
        let key = self.key(number);
        if self.rng.next_u64() % 100 < u64::from(self.options.read_percent) {
            Operation::Read { key }
        } else {
            let value = self.value();
            Operation::Write { key, value }
        }
    }

    /// The key of a number, with a fixed width so that keys sort as their numbers.
    pub(crate) fn key(&self, number: u64) -> Bytes {
        format!("{}{number:012}", self.options.prefix).into()
    }

    /// A value of the wanted length.
    pub(crate) fn value(&mut self) -> Bytes {
        let slack = u64::try_from(VALUE_SLACK_BYTES).expect("64 KiB fits");
        let start = usize::try_from(self.rng.next_u64() % slack).expect("below 64 KiB");
        self.block.slice(start..start + self.options.value_bytes)
    }
}

/// Zipf-distributed ranks in constant time per draw (Gray et al., "Quickly generating
/// billion-record synthetic databases", 1994), as YCSB does it.
struct Zipf {
    count: f64,
    zeta: f64,
    alpha: f64,
    eta: f64,
}

impl Zipf {
    fn new(count: u64) -> Self {
        let count = count.max(2);
        let zeta: f64 = (1..=count)
            .map(|rank| 1.0 / float(rank).powf(ZIPF_EXPONENT))
            .sum();
        let zeta_of_two = 1.0 + 0.5_f64.powf(ZIPF_EXPONENT);
        let count = float(count);
        Self {
            count,
            zeta,
            alpha: 1.0 / (1.0 - ZIPF_EXPONENT),
            eta: (1.0 - (2.0 / count).powf(1.0 - ZIPF_EXPONENT)) / (1.0 - zeta_of_two / zeta),
        }
    }

    /// The rank, from 0, for a fraction in 0..1.
    fn rank(&self, fraction: f64) -> u64 {
        let scaled = fraction * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + 0.5_f64.powf(ZIPF_EXPONENT) {
            return 1;
        }
        let position = self.count * (self.eta * fraction - self.eta + 1.0).powf(self.alpha);
        whole(position.min(self.count - 1.0))
    }
}

/// A fraction in 0..1 from the upper 53 bits of a random number.
#[expect(
    clippy::cast_precision_loss,
    reason = "53 bits are exactly what a double holds"
)]
fn fraction(random: u64) -> f64 {
    (random >> 11) as f64 / (1_u64 << 53) as f64
}

#[expect(clippy::cast_precision_loss, reason = "key counts are far below 2^53")]
fn float(number: u64) -> f64 {
    number as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rank is not negative and below the key count"
)]
fn whole(number: f64) -> u64 {
    number as u64
}

/// Spreads a number over all 64 bits (the finalizer of splitmix64).
fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests;
