//! Targets, scores and debt of given shapes.

use super::super::shape::{SCORE_DUE, Targets, run_count};
use super::*;

const MIB: u64 = 1 << 20;
const BASE: u64 = 128 * MIB;

/// Base level and the targets from there on, in MiB, for levels of these sizes in MiB.
fn targets(sizes: [u64; LEVELS]) -> (usize, Vec<u64>) {
    let targets = Targets::new(sizes.map(|size| size * MIB), BASE);
    let bytes = (targets.base..LEVELS).map(|level| targets.bytes(level) / MIB);
    (targets.base, bytes.collect())
}

#[test]
fn the_base_is_the_first_level_whose_target_the_base_size_covers() {
    assert_eq!(targets([0; LEVELS]), (6, vec![0]));
    assert_eq!(
        targets([500, 0, 0, 0, 0, 0, 0]),
        (6, vec![0]),
        "L0 does not count"
    );
    assert_eq!(targets([0, 0, 0, 0, 0, 0, 128]), (6, vec![128]));
    assert_eq!(targets([0, 0, 0, 0, 0, 0, 129]), (5, vec![12, 129]));
    assert_eq!(targets([0, 0, 0, 0, 0, 100, 1_000]), (5, vec![100, 1_000]));
    assert_eq!(
        targets([0, 0, 0, 0, 20, 200, 2_000]),
        (4, vec![20, 200, 2_000])
    );
    assert_eq!(
        targets([0, 0, 0, 27, 276, 2_760, 27_600]),
        (3, vec![27, 276, 2_760, 27_600])
    );
    let tib = 1 << 20;
    assert_eq!(
        targets([0, 0, 0, 0, 0, 0, 3 * tib]).0,
        1,
        "more data than levels: L1 takes what L0 gives"
    );
    assert!(targets([0, 0, 0, 0, 0, 0, 300 * tib]).1[0] > 128);
}

#[test]
fn at_most_a_ninth_of_the_data_lies_above_the_bottom() {
    for size in [1, 100, 129, 1_279, 1_281, 12_801, 1 << 20, 1 << 24] {
        let (_, bytes) = targets([0, 0, 0, 0, 0, 0, size]);
        let (bottom, above) = bytes.split_last().unwrap();
        assert!(
            above.iter().sum::<u64>() * 9 <= *bottom,
            "{size} MiB: {bytes:?}"
        );
    }
}

#[test]
fn a_base_with_data_stays_when_the_data_below_shrinks() {
    assert_eq!(targets([0, 0, 0, 0, 5, 0, 40]), (4, vec![12, 12, 40]));
    assert_eq!(targets([0, 0, 0, 0, 300, 0, 0]), (4, vec![12, 30, 300]));
}

#[test]
fn a_run_of_l0_is_a_table_that_a_reader_of_some_key_must_look_at() {
    let count = |ranges: &[(&str, &str)]| {
        let tables = ranges.iter().enumerate().rev();
        let tables = tables.map(|(number, (smallest, largest))| {
            Arc::new(table(number as u64 + 1, smallest, largest, 1))
        });
        run_count(&tables.collect::<Vec<_>>())
    };
    assert_eq!(count(&[]), 0);
    assert_eq!(count(&[("a", "c"), ("d", "f"), ("g", "i")]), 1);
    assert_eq!(count(&[("a", "c"), ("c", "f"), ("g", "i")]), 2);
    assert_eq!(count(&[("a", "z"), ("a", "z"), ("a", "z")]), 3);
    assert_eq!(count(&[("a", "c"), ("d", "f"), ("b", "e"), ("b", "e")]), 3);
}

fn full(level: usize, count: u64, bytes: u64) -> Vec<Arc<TableMeta>> {
    let tables = (0..count).map(|number| {
        let key = format!("{number:03}");
        Arc::new(table(level as u64 * 1_000 + number + 1, &key, &key, bytes))
    });
    tables.collect()
}

#[test]
fn nothing_is_owed_while_all_levels_are_within_their_targets() {
    let mut plan = Plan::default();
    assert_eq!(levels(&plan).debt(&options()), 0);
    plan[6] = full(6, 50, 10);
    plan[5] = full(5, 5, 10);
    plan[0] = full(0, 3, 10);
    assert_eq!(levels(&plan).debt(&options()), 0);
}

#[test]
fn debt_counts_what_moves_and_what_it_meets() {
    let mut plan = Plan::default();
    plan[6] = full(6, 50, 10);
    plan[5] = full(5, 10, 10);
    // L5 may hold 50 and has 100; each of the 50 that go meets five of L6.
    assert_eq!(levels(&plan).debt(&options()), 50 * 6);
    plan[0] = vec![Arc::new(table(9, "000", "900", 100))];
    // L0 meets all of L5, then 150 leave a level of 200, which meets 500.
    assert_eq!(levels(&plan).score_of_l0(&options()), SCORE_DUE);
    assert_eq!(levels(&plan).debt(&options()), 100 + 100 + 150 * 700 / 200);
}
