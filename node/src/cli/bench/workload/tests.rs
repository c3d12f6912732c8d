//! Workloads repeat by seed and follow their distribution.

use std::collections::BTreeMap;

use super::*;

fn options(distribution: Distribution, read_percent: u8) -> WorkloadOptions {
    WorkloadOptions {
        seed: 42,
        keys: 1000,
        distribution,
        read_percent,
        value_bytes: 100,
        prefix: "bench:".to_owned(),
    }
}

fn counts(distribution: Distribution, read_percent: u8) -> (usize, BTreeMap<Bytes, usize>) {
    let mut workload = Workload::new(&options(distribution, read_percent), 0);
    let mut reads = 0;
    let mut keys = BTreeMap::new();
    for _ in 0..20_000 {
        let key = match workload.next() {
            Operation::Read { key } => {
                reads += 1;
                key
            }
            Operation::Write { key, value } => {
                assert_eq!(value.len(), 100);
                key
            }
        };
        *keys.entry(key).or_default() += 1;
    }
    (reads, keys)
}

#[test]
fn equal_seeds_give_equal_requests_and_other_streams_differ() {
    let sequence = |stream| {
        let mut workload = Workload::new(&options(Distribution::Zipf, 50), stream);
        (0..50).map(|_| workload.next()).collect::<Vec<_>>()
    };
    assert_eq!(sequence(1), sequence(1));
    assert_ne!(sequence(1), sequence(2));
}

#[test]
fn the_read_share_is_kept() {
    let (reads, _) = counts(Distribution::Uniform, 30);
    assert!((5_500..6_500).contains(&reads), "{reads}");
    assert_eq!(counts(Distribution::Uniform, 0).0, 0);
    assert_eq!(counts(Distribution::Uniform, 100).0, 20_000);
}

#[test]
fn uniform_reaches_every_key_and_zipf_favours_one() {
    let (_, uniform) = counts(Distribution::Uniform, 0);
    assert_eq!(uniform.len(), 1000);
    assert!(uniform.values().all(|count| *count < 60));
    let (_, zipf) = counts(Distribution::Zipf, 0);
    let hottest = zipf.values().max().unwrap();
    assert!((2_000..3_500).contains(hottest), "{hottest}");
}

#[test]
fn keys_sort_as_their_numbers() {
    let workload = Workload::new(&options(Distribution::Uniform, 0), 0);
    assert_eq!(workload.key(7), "bench:000000000007");
    assert!(workload.key(9) < workload.key(10));
}

#[test]
fn one_key_is_enough_for_both_distributions() {
    for distribution in [Distribution::Uniform, Distribution::Zipf] {
        let single = WorkloadOptions {
            keys: 1,
            ..options(distribution, 0)
        };
        let mut workload = Workload::new(&single, 0);
        for _ in 0..100 {
            let Operation::Write { key, .. } = workload.next() else {
                panic!("a read without a read share");
            };
            assert_eq!(key, "bench:000000000000");
        }
    }
}
