//! Where an export starts, resumes and ends up.

use super::*;

#[test]
fn a_resumed_export_starts_right_behind_the_key() {
    let between = |start: &'static [u8], end: Option<&'static [u8]>| ScanRange::Between {
        start: Bytes::from_static(start),
        end: end.map(Bytes::from_static),
    };
    assert_eq!(range(None, None), ScanRange::All);
    assert_eq!(range(None, Some(b"k")), between(b"k\0", None));
    assert_eq!(
        range(Some("p".into()), Some(b"pk")),
        between(b"pk\0", Some(b"q"))
    );
}

#[test]
fn resuming_cuts_a_torn_line_and_finds_the_last_key() {
    let directory = tempfile::tempdir().unwrap();
    let part = directory.path().join("x.tsv.part");
    files::write_atomically(&part, b"a\t1\nb\\t\t2\nc\t").unwrap();
    assert_eq!(last_key(&part, RecordFormat::Tsv).unwrap().unwrap(), b"b\t");
    assert_eq!(files::read(&part, 100).unwrap(), b"a\t1\nb\\t\t2\n");
    assert_eq!(last_key(&part, RecordFormat::Tsv).unwrap().unwrap(), b"b\t");
    assert_eq!(
        last_key(&part, RecordFormat::Jsonl).unwrap_err().exit,
        Exit::Usage
    );
}

#[test]
fn a_part_without_a_whole_line_starts_anew_and_a_missing_one_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let part = directory.path().join("x.part");
    let failure = last_key(&part, RecordFormat::Tsv).unwrap_err();
    assert!(failure.message.contains("leave out --resume"), "{failure}");
    files::write_atomically(&part, b"torn").unwrap();
    assert_eq!(last_key(&part, RecordFormat::Tsv).unwrap(), None);
}

#[test]
fn a_file_appears_only_when_it_is_complete() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("x.tsv");
    let destination = Destination::open(Some(&file), false).unwrap();
    destination.writer().write_all(b"a\t1\n").unwrap();
    assert!(!files::exists(&file));
    destination.complete().unwrap();
    assert_eq!(files::read(&file, 100).unwrap(), b"a\t1\n");
    assert!(!files::exists(&part_of(&file)));
}

#[test]
fn an_interrupted_export_says_how_to_go_on() {
    let output = Destination::Output;
    assert_eq!(output.how_to_resume(None), "nothing was written");
    assert_eq!(
        output.how_to_resume(Some(b"a\tb")),
        "continue with --resume-after 'a\\tb'"
    );
}
