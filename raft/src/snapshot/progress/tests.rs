use proptest::prelude::*;

use super::*;

fn position(file: u32, offset: u64) -> Position {
    Position { file, offset }
}

#[test]
fn pieces_are_taken_only_where_they_belong() {
    let mut progress = Progress::new(vec![0, 10, 0, 5]);
    assert_eq!(progress.at(), position(1, 0));
    assert!(!progress.takes(position(0, 0), 1));
    assert!(!progress.takes(position(1, 1), 1));
    assert!(!progress.takes(position(1, 0), 11));
    assert!(progress.takes(position(1, 0), 4));
    progress.took(4);
    assert!(
        !progress.takes(position(1, 0), 4),
        "nothing is written twice"
    );
    progress.took(6);
    assert_eq!(progress.at(), position(3, 0));
    progress.took(5);
    assert!(progress.is_done());
    assert_eq!(progress.at(), position(4, 0));
    assert!(!progress.takes(position(4, 0), 1));
}

#[test]
fn without_bytes_there_is_nothing_to_send() {
    assert!(Progress::new(Vec::new()).is_done());
    assert!(Progress::new(vec![0, 0]).is_done());
}

proptest! {
    #[test]
    fn a_sender_that_follows_the_position_ends_after_all_bytes(
        lengths in prop::collection::vec(0..50_u64, 0..10),
        chunk in 1..20_u64,
    ) {
        let mut progress = Progress::new(lengths.clone());
        let mut sent = 0;
        while !progress.is_done() {
            let at = progress.at();
            let length = lengths[usize::try_from(at.file).unwrap()];
            let count = chunk.min(length - at.offset);
            let count = usize::try_from(count).unwrap();
            prop_assert!(count > 0 && progress.takes(at, count));
            progress.took(count);
            sent += u64::try_from(count).unwrap();
        }
        prop_assert_eq!(sent, lengths.iter().sum::<u64>());
    }
}
