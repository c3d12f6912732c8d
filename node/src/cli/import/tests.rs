//! What a person is told when an import ends.

use super::*;
use crate::cli::record::RecordError;

fn args() -> ImportArgs {
    ImportArgs {
        file: "packages.tsv".into(),
        format: None,
        resume_from: 100,
        connections: 1,
        client: ClientArgs::default(),
    }
}

const HALF: Outcome = Outcome {
    records: 7,
    offset: 250,
};

fn failure(stop: Stop) -> Failure {
    conclude(&args(), stop, HALF, Duration::from_secs(1)).unwrap_err()
}

#[test]
fn every_early_end_says_where_to_continue() {
    let unknown = Stop::Refused {
        record: 8,
        error: ClientError::OutcomeUnknown {
            reason: "lost".to_owned(),
        },
    };
    let wrong = Stop::Input(ReadError::Line {
        line: 9,
        error: RecordError::NoTab,
    });
    for (stop, code, begins) in [
        (unknown, 4, "record 8: outcome unknown: lost"),
        (wrong, 2, "line 9: no tab between key and value"),
        (Stop::Interrupted, 130, "interrupted"),
    ] {
        let failure = failure(stop);
        assert_eq!(failure.exit.code(), code);
        assert!(failure.message.starts_with(begins), "{failure}");
        assert!(
            failure.message.ends_with(
                "7 records and 250 bytes are surely written; continue with --resume-from 250"
            ),
            "{failure}"
        );
    }
}

#[test]
fn an_import_that_came_to_the_end_is_done() {
    let exit = conclude(&args(), Stop::End, HALF, Duration::from_secs(1));
    assert_eq!(exit, Ok(Exit::Done));
}

#[test]
fn resuming_beyond_the_file_is_a_usage_error() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("x.tsv");
    files::write_atomically(&file, b"a\t1\n").unwrap();
    let failure = Source::open(&ImportArgs { file, ..args() }).err().unwrap();
    assert_eq!(failure.exit, Exit::Usage);
    assert!(failure.message.starts_with("--resume-from"), "{failure}");
}
