//! A blocked Bloom filter over the user keys of a table.
//!
//! All probes of a key fall into one line of 64 bytes, so a lookup costs one cache miss; at ten
//! bits per key and six probes about one absent key in a hundred passes. Keys are hashed to 64
//! bits, since a 32-bit hash alone would let more pass than the filter.

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

use super::format::BLOCK_BYTES_MAX;

/// A cache line.
const LINE_BYTES: usize = 64;
const LINE_BITS: u32 = 512;
/// Kind, count of probes and two zero bytes, behind the lines.
const TAIL_BYTES: usize = 4;
const KIND_BLOCKED_BLOOM: u8 = 1;
/// More probes cost time and win nothing up to twenty bits per key.
const PROBES_MAX: u8 = 12;

/// The hash of a user key, as filters take it.
pub(super) fn hash(user_key: &[u8]) -> u64 {
    xxh3_64(user_key)
}

/// Builds a filter over `hashes`, one per user key, with `bits_per_key` above 0. None when it
/// would be longer than a block may be.
pub(super) fn build(hashes: &[u64], bits_per_key: u8) -> Option<Vec<u8>> {
    let bits = hashes.len().checked_mul(usize::from(bits_per_key))?;
    let line_count = bits.div_ceil(LINE_BYTES * 8).max(1);
    let bytes = line_count
        .checked_mul(LINE_BYTES)?
        .checked_add(TAIL_BYTES)?;
    if bytes > BLOCK_BYTES_MAX || u32::try_from(line_count).is_err() {
        return None;
    }
    // The optimum for lines of 64 bytes: a little under bits * ln 2.
    let probes = u8::try_from((u32::from(bits_per_key) * 3 + 2) / 5)
        .unwrap_or(PROBES_MAX)
        .clamp(1, PROBES_MAX);
    let mut out = vec![0; bytes - TAIL_BYTES];
    for &hash in hashes {
        let line = line(&out, hash);
        for bit in bits_of(hash, probes) {
            out[line + bit / 8] |= 1 << (bit % 8);
        }
    }
    out.extend_from_slice(&[KIND_BLOCKED_BLOOM, probes, 0, 0]);
    Some(out)
}

/// A filter that was read.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    lines: Bytes,
    probes: u8,
}

impl Filter {
    pub(super) fn decode(mut bytes: Bytes) -> Option<Self> {
        let &[.., kind, probes, 0, 0] = &*bytes else {
            return None;
        };
        bytes.truncate(bytes.len() - TAIL_BYTES);
        let lines = bytes.len() / LINE_BYTES;
        let known = kind == KIND_BLOCKED_BLOOM && (1..=PROBES_MAX).contains(&probes);
        let whole = lines > 0 && bytes.len().is_multiple_of(LINE_BYTES);
        let bounded = u32::try_from(lines).is_ok();
        (known && whole && bounded).then_some(Self {
            lines: bytes,
            probes,
        })
    }

    /// Whether the table may hold the key with this hash: never false for one that it holds.
    pub(super) fn may_contain(&self, hash: u64) -> bool {
        let start = line(&self.lines, hash);
        let line = &self.lines[start..start + LINE_BYTES];
        bits_of(hash, self.probes).all(|bit| line[bit / 8] & (1 << (bit % 8)) != 0)
    }

    pub(super) fn bytes(&self) -> usize {
        self.lines.len()
    }
}

/// Where the line of a hash starts: the upper half of the hash, scaled to the count of lines.
fn line(lines: &[u8], hash: u64) -> usize {
    let count = u64::try_from(lines.len() / LINE_BYTES).expect("a length fits 64 bits");
    let line = ((hash >> 32) * count) >> 32;
    usize::try_from(line).expect("the line is below the count of lines") * LINE_BYTES
}

/// The bits of a hash in its line: the upper nine bits after each of several multiplications.
fn bits_of(hash: u64, probes: u8) -> impl Iterator<Item = usize> {
    (0..probes).scan(hash, |state, _| {
        *state = state.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let bit = *state >> (u64::BITS - LINE_BITS.trailing_zeros());
        Some(usize::try_from(bit).expect("nine bits fit"))
    })
}

#[cfg(test)]
mod tests;
