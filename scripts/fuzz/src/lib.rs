//! What the fuzz targets share: a bound on memory, and the shape of golden files that hold several
//! things.
//!
//! A target is a thin wrapper: it hands its input to a public decoder, which must not panic nor
//! take memory out of proportion, and encodes what came out to see that it comes back. Checksums
//! would keep a fuzzer out, so the targets of durable files also try each input with its checksums
//! put right.

/// Memory that a decoder may hold for each byte of its input: the smallest sub-batch outcome is one
/// byte long and decodes to a few words, and a list may grow by doubling.
const BYTES_PER_INPUT_BYTE_MAX: usize = 128;

/// Memory that a decoder may hold whatever its input: errors in words, first nodes of maps.
const BYTES_ALWAYS: usize = 4096;

/// Runs a decoder and checks how much memory it held at its peak.
pub fn bounded<T>(input: &[u8], decode: impl FnOnce() -> T) -> T {
    let mut decoded = None;
    let used = allocation_counter::measure(|| decoded = Some(decode()));
    let bytes_max = BYTES_ALWAYS + BYTES_PER_INPUT_BYTE_MAX * input.len();
    assert!(
        usize::try_from(used.bytes_max).is_ok_and(|used| used <= bytes_max),
        "{} bytes of memory for {} bytes of input",
        used.bytes_max,
        input.len()
    );
    decoded.expect("measuring runs what it measures")
}

/// Runs a decoder that must not allocate.
pub fn unallocated<T>(decode: impl FnOnce() -> T) -> T {
    let mut decoded = None;
    let used = allocation_counter::measure(|| decoded = Some(decode()));
    assert_eq!(used.count_total, 0, "the decoder allocated");
    decoded.expect("measuring runs what it measures")
}

/// The parts of a golden file in which each stands behind its length as a big-endian u32. Ends
/// where the input does not hold a whole part any more.
pub fn parts(mut input: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = input.split_first_chunk()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (part, rest) = rest.split_at_checked(length)?;
        input = rest;
        Some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_in_proportion_passes() {
        assert_eq!(bounded(&[0; 10], || vec![1_u8; 100]).len(), 100);
        assert_eq!(unallocated(|| 1), 1);
    }

    #[test]
    #[should_panic(expected = "bytes of memory for 1 bytes of input")]
    fn memory_out_of_proportion_is_found() {
        bounded(&[0], || vec![1_u8; 1 << 20]);
    }

    #[test]
    #[should_panic(expected = "the decoder allocated")]
    fn an_allocation_is_found() {
        unallocated(|| vec![1_u8]);
    }

    #[test]
    fn parts_end_with_the_last_whole_one() {
        let input = [0, 0, 0, 1, 7, 0, 0, 0, 0, 0, 0, 0, 9, 1];
        let found: Vec<&[u8]> = parts(&input).collect();
        assert_eq!(found, [&[7][..], &[]]);
    }
}
