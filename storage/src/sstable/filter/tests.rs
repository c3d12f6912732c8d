use proptest::prelude::*;

use super::*;

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

fn filter(keys: std::ops::Range<u32>, bits_per_key: u8) -> Filter {
    let hashes: Vec<_> = keys.map(|number| hash(&key(number))).collect();
    Filter::decode(build(&hashes, bits_per_key).unwrap().into()).unwrap()
}

/// The rate at which absent keys pass, from the Poisson distribution of keys over lines.
fn theory(bits_per_key: u8, probes: u8) -> f64 {
    let bits = f64::from(LINE_BITS);
    let mean = bits / f64::from(bits_per_key);
    let mut share = (-mean).exp();
    let mut rate = 0.0;
    for keys in 0..1_000 {
        let set = 1.0 - (1.0 - 1.0 / bits).powf(f64::from(keys) * f64::from(probes));
        rate += share * set.powf(f64::from(probes));
        share *= mean / f64::from(keys + 1);
    }
    rate
}

#[test]
fn absent_keys_pass_at_the_rate_of_theory() {
    for (bits_per_key, keys, probes) in [(8, 20_000, 5), (10, 40_000, 6), (14, 60_000, 8)] {
        let filter = filter(0..keys, bits_per_key);
        assert_eq!(filter.probes, probes);
        let asked = 600_000;
        let passed = (keys..keys + asked)
            .filter(|&number| filter.may_contain(hash(&key(number))))
            .count();
        let rate = f64::from(u32::try_from(passed).unwrap()) / f64::from(asked);
        let expected = theory(bits_per_key, probes);
        assert!(
            (rate / expected - 1.0).abs() < 0.1,
            "{bits_per_key} bits: {rate} instead of {expected}"
        );
    }
}

#[test]
fn a_key_of_the_table_always_passes() {
    for (keys, bits_per_key) in [(0..1, 1), (0..1, 255), (0..5_000, 1), (0..5_000, 10)] {
        let filter = filter(keys.clone(), bits_per_key);
        for number in keys {
            assert!(filter.may_contain(hash(&key(number))), "{number}");
        }
    }
}

proptest! {
    #[test]
    fn a_filter_of_arbitrary_bytes_never_panics(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        lines in 0..4_usize,
        hash: u64,
    ) {
        let _ = Filter::decode(bytes.clone().into());
        let mut bytes = bytes;
        bytes.resize(lines * LINE_BYTES, 0x55);
        bytes.extend_from_slice(&[KIND_BLOCKED_BLOOM, 6, 0, 0]);
        let filter = Filter::decode(bytes.into());
        prop_assert_eq!(filter.is_some(), lines > 0);
        let _ = filter.map(|filter| filter.may_contain(hash));
    }
}
