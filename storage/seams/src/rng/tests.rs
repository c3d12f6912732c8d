use super::*;

#[test]
fn equal_seeds_give_equal_streams() {
    let (left, right, other) = (SeededRng::new(7), SeededRng::new(7), SeededRng::new(8));
    let stream = |rng: &SeededRng| (0..8).map(|_| rng.next_u64()).collect::<Vec<_>>();
    let first = stream(&left);
    assert_eq!(first, stream(&right));
    assert_ne!(first, stream(&other));
}

#[test]
fn fill_covers_lengths_that_are_no_multiple_of_eight() {
    for length in 0..20 {
        let mut bytes = vec![0; length];
        SeededRng::new(3).fill(&mut bytes);
        assert!(!bytes.contains(&0), "length {length}");
    }
}

#[test]
fn the_system_generator_does_not_repeat() {
    let rng = OsRng::open().unwrap();
    assert_ne!(rng.next_u64(), rng.next_u64());
}
