use super::*;

fn arrived(sequences: &[u64]) -> Window {
    let mut window = Window::default();
    for sequence in sequences {
        assert!(window.accept(1, *sequence), "{sequence}");
    }
    window
}

/// What arrived of how many; zeros before anything did.
fn tally(window: &Window, overdue: u64) -> (u16, u16) {
    let lost = window.tally(overdue);
    lost.map_or((0, 0), |lost| (lost.received, lost.window))
}

#[test]
fn nothing_counts_twice() {
    let mut window = arrived(&[5, 7, 6]);
    for sequence in [5, 6, 7] {
        assert!(!window.accept(1, sequence), "{sequence}");
    }
    assert_eq!(tally(&window, 0), (3, 3));
}

#[test]
fn the_order_of_arrival_does_not_matter_within_the_window() {
    let mut window = arrived(&[200]);
    assert!(window.accept(1, 200 - REMEMBERED + 1));
    assert!(!window.accept(1, 200 - REMEMBERED), "too old to tell");
    assert!(!window.accept(1, 1));
}

#[test]
fn a_sequence_of_zero_is_refused() {
    assert!(!Window::default().accept(1, 0));
}

#[test]
fn a_newer_boot_begins_anew_and_an_older_one_is_over() {
    let mut window = arrived(&[900, 901]);
    assert!(window.accept(2, 1));
    assert!(!window.accept(1, 902), "the boot before");
    assert!(!window.accept(2, 1));
    assert_eq!(tally(&window, 0), (1, 1));
    assert!(window.is_newest(2, 1));
}

#[test]
fn loss_counts_from_the_first_that_arrived() {
    assert_eq!(Window::default().tally(5), None);
    assert_eq!(tally(&arrived(&[5_000]), 0), (1, 1));
    assert_eq!(tally(&arrived(&[5_000, 5_003]), 0), (2, 4));
    assert_eq!(tally(&arrived(&[5_000, 5_003, 4_999]), 0), (3, 5));
}

#[test]
fn loss_is_of_the_last_hundred() {
    let all: Vec<u64> = (1..=300).collect();
    assert_eq!(tally(&arrived(&all), 0), (100, 100));
    let odd: Vec<u64> = (1..=300).filter(|sequence| sequence % 2 == 1).collect();
    assert_eq!(tally(&arrived(&odd), 0), (50, 100));
    assert_eq!(tally(&arrived(&[1, 2, 3, 300]), 0), (1, 100));
    assert_eq!(tally(&arrived(&[1, u64::MAX]), 0), (1, 100));
}

#[test]
fn what_is_overdue_is_lost() {
    let all: Vec<u64> = (1..=300).collect();
    let window = arrived(&all);
    assert_eq!(tally(&window, 10), (90, 100));
    assert_eq!(tally(&window, 100), (0, 100));
    assert_eq!(tally(&window, u64::MAX), (0, 100));
    assert_eq!(tally(&arrived(&[1, 2]), 3), (2, 5));
}

proptest::proptest! {
    /// The simplest model: the set of all that was accepted.
    #[test]
    fn the_window_agrees_with_a_set(sequences in proptest::collection::vec(1_u64..400, 0..200)) {
        let mut window = Window::default();
        let mut set = std::collections::BTreeSet::new();
        for sequence in sequences {
            let highest = set.last().copied().unwrap_or(0);
            let too_old = highest >= REMEMBERED && sequence <= highest - REMEMBERED;
            let expected = !too_old && !set.contains(&sequence);
            proptest::prop_assert_eq!(window.accept(7, sequence), expected);
            if expected {
                set.insert(sequence);
            }
            let highest = set.last().copied().unwrap_or(0);
            let lowest = set.first().copied().unwrap_or(0);
            let from = lowest.max((highest + 1).saturating_sub(LOSS_WINDOW));
            let tally = window.tally(0).unwrap();
            proptest::prop_assert_eq!(u64::from(tally.window), highest + 1 - from);
            let received = set.range(from..).count();
            proptest::prop_assert_eq!(usize::from(tally.received), received);
        }
    }
}
