//! What is picked: given shapes, and rules that hold for any.

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::pick::{Compaction, Turns, pick};
use super::super::shape::overlap;
use super::*;

type Picked = (usize, Vec<u64>, usize, Vec<u64>, bool);

fn numbers(tables: &[Arc<TableMeta>]) -> Vec<u64> {
    tables.iter().map(|table| table.number.get()).collect()
}

/// Upper level and its inputs, output level and its inputs, whether it is a move.
fn picked(plan: &Plan, turns: &Turns) -> Option<Picked> {
    let (_, found) = pick(&levels(plan), &options(), turns)?;
    let (upper, lower) = (numbers(&found.upper), numbers(&found.lower));
    let (from, to) = (found.upper_level, found.output_level);
    Some((from, upper, to, lower, found.trivial_move))
}

fn first_pick(plan: &Plan) -> Option<Picked> {
    picked(plan, &Turns::default())
}

fn shared(tables: impl IntoIterator<Item = TableMeta>) -> Vec<Arc<TableMeta>> {
    tables.into_iter().map(Arc::new).collect()
}

#[test]
fn small_levels_are_left_alone() {
    let mut plan = Plan::default();
    assert_eq!(first_pick(&plan), None);
    plan[0] = shared((1..=3).rev().map(|number| table(number, "a", "z", 10)));
    plan[6] = shared([table(9, "a", "z", 90)]);
    assert_eq!(first_pick(&plan), None);
}

#[test]
fn l0_goes_to_the_base_as_a_whole_when_all_of_it_shares_keys() {
    let mut plan = Plan::default();
    plan[0] = shared((2..=5).rev().map(|number| table(number, "c", "x", 10)));
    plan[6] = shared([table(1, "a", "b", 10), table(6, "d", "z", 10)]);
    assert_eq!(
        first_pick(&plan),
        Some((0, vec![5, 4, 3, 2], 6, vec![6], false))
    );
    plan[6] = shared([table(1, "a", "b", 400), table(6, "d", "z", 400)]);
    assert_eq!(
        first_pick(&plan),
        Some((0, vec![5, 4, 3, 2], 5, vec![], false)),
        "L5 is the base of 800 bytes"
    );
}

#[test]
fn of_l0_the_deepest_pile_goes_first_and_what_shares_no_key_stays() {
    let mut plan = Plan::default();
    plan[0] = shared([
        table(7, "m", "p", 1),
        table(6, "a", "b", 1),
        table(5, "n", "q", 1),
        table(4, "o", "z", 1),
        table(3, "p", "p", 1),
        table(2, "b", "c", 1),
    ]);
    assert_eq!(
        first_pick(&plan),
        Some((0, vec![7, 5, 4, 3], 6, vec![], false))
    );
}

#[test]
fn of_a_pile_that_is_too_much_the_oldest_go_first() {
    let mut plan = Plan::default();
    plan[0] = shared((1..=9).rev().map(|number| table(number, "a", "b", 60)));
    let upper = vec![4, 3, 2, 1];
    assert_eq!(first_pick(&plan), Some((0, upper, 6, vec![], false)));
    plan[0] = shared((1..=9).rev().map(|number| table(number, "a", "b", 600)));
    assert_eq!(first_pick(&plan), Some((0, vec![1], 6, vec![], true)));
}

#[test]
fn tables_of_l0_that_share_nothing_move_as_they_are() {
    let mut plan = Plan::default();
    plan[0] = shared([table(3, "e", "f", 60), table(2, "a", "b", 60)]);
    plan[6] = shared([table(1, "c", "d", 10)]);
    assert_eq!(first_pick(&plan), Some((0, vec![2], 6, vec![], true)));
}

/// L5 is over its target of 50 by four tables.
fn over_target() -> Plan {
    let mut plan = Plan::default();
    plan[5] = shared((1..=9).map(|number| {
        let (smallest, largest) = (format!("{number}0"), format!("{number}5"));
        table(number, &smallest, &largest, 10)
    }));
    plan[6] = shared((1..=9).map(|number| {
        let (smallest, largest) = (format!("{number}3"), format!("{number}8"));
        table(
            100 + number,
            &smallest,
            &largest,
            if number == 6 { 44 } else { 57 },
        )
    }));
    plan
}

#[test]
fn the_table_that_meets_least_for_its_size_goes_down() {
    assert_eq!(
        first_pick(&over_target()),
        Some((5, vec![6], 6, vec![106], false))
    );
    let mut plan = over_target();
    plan[5][2] = Arc::new(table(3, "30", "35", 20));
    assert_eq!(first_pick(&plan), Some((5, vec![3], 6, vec![103], false)));
}

#[test]
fn tables_that_meet_the_same_take_turns() {
    let mut plan = over_target();
    plan[6][5] = Arc::new(table(106, "63", "68", 57));
    let mut turns = Turns::default();
    for expected in [1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2] {
        let (_, compaction) = pick(&levels(&plan), &options(), &turns).unwrap();
        assert_eq!(numbers(&compaction.upper), [expected]);
        turns.done(&compaction);
    }
}

#[test]
fn a_table_with_nothing_below_moves_unless_tombstones_would_go() {
    let mut plan = over_target();
    plan[6].retain(|table| table.number.get() != 104);
    assert_eq!(first_pick(&plan), Some((5, vec![4], 6, vec![], true)));
    let mut dead = table(4, "40", "45", 10);
    dead.tombstones = 1;
    plan[5][3] = Arc::new(dead);
    assert_eq!(first_pick(&plan), Some((5, vec![4], 6, vec![], false)));
}

#[test]
fn a_level_whose_next_one_is_fuller_waits() {
    let mut plan = over_target();
    // L4 is at twice its target of 10, L5 at four times its own.
    plan[4] = shared([table(50, "20", "21", 20)]);
    plan[5].extend(shared((0..20).map(|number| {
        let key = format!("a{number:02}");
        table(200 + number, &key, &key, 10)
    })));
    let (_, compaction) = pick(&levels(&plan), &options(), &Turns::default()).unwrap();
    assert_eq!(compaction.upper_level, 5);
}

#[test]
fn tables_of_tombstones_sink_when_nothing_else_is_to_do() {
    let mut plan = Plan::default();
    plan[5] = shared([table(1, "a", "b", 10), table(2, "c", "d", 10)]);
    plan[6] = shared([table(3, "a", "m", 300)]);
    assert_eq!(first_pick(&plan), None);
    let mut dead = table(2, "c", "d", 10);
    dead.tombstones = 5;
    plan[5][1] = Arc::new(dead);
    assert_eq!(first_pick(&plan), Some((5, vec![2], 6, vec![3], false)));
}

#[test]
fn many_small_tables_that_share_nothing_leave_l0_and_grow_together() {
    let mut plan = Plan::default();
    let mut turns = Turns::default();
    let mut rewritten = 0;
    for number in 1..1_000 {
        let key = format!("{number:03}");
        plan[0].insert(0, Arc::new(table(number, &key, &key, 1)));
        while let Some((_, compaction)) = pick(&levels(&plan), &options(), &turns) {
            turns.done(&compaction);
            rewritten += u64::from(!compaction.trivial_move) * compaction.input_bytes();
            apply(&mut plan, &compaction);
        }
        assert!(plan[0].len() < 10, "half of what makes the writer wait");
    }
    let tables: usize = plan.iter().map(Vec::len).sum();
    assert!(
        tables < 200,
        "{tables} tables of 10 bytes at most hold 1,000 bytes"
    );
    assert!(rewritten < 5_000, "{rewritten}");
}

#[test]
#[should_panic(expected = "share keys")]
fn tables_of_a_deep_level_that_share_a_user_key_are_refused() {
    let mut plan = Plan::default();
    plan[6] = shared([table(1, "a", "b", 10), table(2, "b", "c", 10)]);
    levels(&plan);
}

/// Any table set that keeps the rules of levels.
fn plans() -> impl Strategy<Value = Plan> {
    let bytes = || prop_oneof![1..20_u64, 1..200_u64];
    let loose = vec((0..60_u8, 0..12_u8, bytes(), 0..=10_u64), 0..8);
    let level = prop_oneof![
        Just(Vec::new()),
        vec((1..6_u8, 0..4_u8, bytes(), 0..=10_u64), 0..20),
    ];
    (loose, vec(level, LEVELS - 1)).prop_map(|(loose, deep)| {
        let mut plan = Plan::default();
        let mut number = 1;
        let mut make = |from: u32, to: u32, bytes, tombstones| {
            number += 1;
            let mut made = table(number, &format!("{from:05}"), &format!("{to:05}"), bytes);
            made.tombstones = tombstones;
            Arc::new(made)
        };
        for (from, span, bytes, tombstones) in loose {
            let from = u32::from(from);
            plan[0].insert(0, make(from, from + u32::from(span), bytes, tombstones));
        }
        for (level, tables) in deep.into_iter().enumerate() {
            let mut from = 0;
            for (gap, span, bytes, tombstones) in tables {
                from += u32::from(gap);
                let to = from + u32::from(span);
                plan[level + 1].push(make(from, to, bytes, tombstones));
                from = to + 1;
            }
        }
        plan
    })
}

fn check_inputs(plan: &Plan, compaction: &Compaction<TableMeta>) {
    let inputs: BTreeSet<_> = compaction.inputs().map(|(_, table)| table.number).collect();
    assert_eq!(
        inputs.len(),
        compaction.upper.len() + compaction.lower.len()
    );
    assert!(!compaction.upper.is_empty());
    assert!(compaction.upper_level < compaction.output_level);
    for (level, table) in compaction.inputs() {
        assert!(plan[level].contains(table), "an input is of its level");
    }
    let between = &plan[compaction.upper_level + 1..compaction.output_level];
    assert!(between.iter().all(Vec::is_empty), "no level is passed");
    let is_input = |table: &TableMeta| inputs.contains(&table.number);
    for table in &compaction.upper {
        if compaction.upper_level == 0 {
            let older = plan[0].iter().filter(|other| other.epoch < table.epoch);
            for other in older.filter(|other| overlap(other, table)) {
                assert!(is_input(other), "newer data sinks below {}", other.number);
            }
        }
        let below = plan[compaction.output_level].iter();
        for other in below.filter(|other| overlap(other, table)) {
            assert!(is_input(other), "{} is left out", other.number);
        }
    }
}

/// The outputs lie between the ends of the inputs, so the output level stays disjoint.
fn check_hull(plan: &Plan, compaction: &Compaction<TableMeta>) {
    let ends =
        |end: fn(&TableMeta) -> &Bytes| compaction.inputs().map(move |(_, table)| end(table));
    let smallest = ends(|table| &table.smallest).min().unwrap();
    let largest = ends(|table| &table.largest).max().unwrap();
    let mut hull = table(0, "", "", 1);
    (hull.smallest, hull.largest) = (smallest.clone(), largest.clone());
    for other in &plan[compaction.output_level] {
        assert!(compaction.lower.contains(other) || !overlap(other, &hull));
    }
    if compaction.output_level + 1 < LEVELS {
        let met = plan[compaction.output_level + 1].iter();
        let met: Vec<_> = met.filter(|other| overlap(other, &hull)).cloned().collect();
        assert_eq!(met, compaction.grandparents);
    }
    if compaction.trivial_move {
        assert_eq!((compaction.upper.len(), compaction.lower.len()), (1, 0));
    }
}

/// The plan after the compaction, as if nothing were dropped but the tombstones at the bottom.
fn apply(plan: &mut Plan, compaction: &Compaction<TableMeta>) {
    let inputs: Vec<_> = compaction
        .inputs()
        .map(|(_, table)| Arc::clone(table))
        .collect();
    for level in [compaction.upper_level, compaction.output_level] {
        plan[level].retain(|table| !inputs.contains(table));
    }
    let mut output = TableMeta::clone(&inputs[0]);
    for table in &inputs {
        output.smallest = output.smallest.min(table.smallest.clone());
        output.largest = output.largest.max(table.largest.clone());
    }
    output.bytes = inputs.iter().map(|table| table.bytes).sum();
    if compaction.output_level == LEVELS - 1 {
        output.tombstones = 0;
    }
    plan[compaction.output_level].push(Arc::new(output));
    plan[compaction.output_level].sort_by_key(|table| table.smallest.clone());
}

proptest! {
    #[test]
    fn inputs_are_complete_and_the_output_level_stays_disjoint(mut plan in plans()) {
        let mut turns = Turns::default();
        let mut count = 0;
        while let Some((_, compaction)) = pick(&levels(&plan), &options(), &turns) {
            check_inputs(&plan, &compaction);
            check_hull(&plan, &compaction);
            turns.done(&compaction);
            apply(&mut plan, &compaction);
            count += 1;
            prop_assert!(count < 10_000, "compaction ends");
        }
        prop_assert_eq!(levels(&plan).debt(&options()), 0);
    }
}
