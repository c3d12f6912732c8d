//! Directories of arbitrary bytes: opening them may be refused but never panics.

use proptest::prelude::*;

use super::corruption::{closed, content, copy, wal_paths};
use super::stage::Stage;
use super::*;
use crate::fuzzing;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_log_of_arbitrary_bytes_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        fuzzing::wal_file(&bytes);
        fuzzing::wal_record(&bytes);
        fuzzing::hard_state(&bytes);
        fuzzing::identity(&bytes);
    }

    #[test]
    fn a_log_with_shuffled_pieces_never_panics(
        moves in prop::collection::vec((any::<usize>(), any::<usize>(), 1..100_usize), 1..4),
    ) {
        let (disk, _) = closed();
        let damaged = copy(&disk);
        let paths = wal_paths(&disk);
        for (from, to, length) in moves {
            let path = &paths[from % paths.len()];
            let source = content(&disk, &paths[to % paths.len()]);
            let from = from % source.len();
            let piece = source[from..source.len().min(from + length)].to_vec();
            damaged.corrupt(path, |bytes| {
                let to = to % bytes.len();
                let end = bytes.len().min(to + piece.len());
                bytes[to..end].copy_from_slice(&piece[..end - to]);
            }).unwrap();
        }
        if let Ok(database) = Stage::new(Arc::new(damaged)).open() {
            let _ = database.log(LogNumber::new(3)).unwrap().last();
        }
    }
}
