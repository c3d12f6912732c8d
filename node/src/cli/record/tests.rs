//! Text and back, for every byte; wrong text is named.

use std::io::BufReader;

use proptest::prelude::*;

use super::*;

fn line(format: RecordFormat, key: &[u8], value: &[u8]) -> String {
    let mut out = Vec::new();
    encode(format, key, value, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn tsv_is_the_documented_text() {
    assert_eq!(
        line(RecordFormat::Tsv, b"a\tb", b"1\n2\r\\\x00\x7f\xff\xc3\xa9"),
        "a\\tb\t1\\n2\\r\\\\\\x00\\x7f\\xff\u{e9}\n"
    );
}

#[test]
fn jsonl_is_the_documented_text() {
    assert_eq!(
        line(RecordFormat::Jsonl, b"k\"", b"\xff\x00"),
        "{\"key\":\"k\\\"\",\"value\":{\"b64\":\"/wA=\"}}\n"
    );
}

#[test]
fn wrong_lines_are_named() {
    let check = |format, text: &str, expected: &str| {
        assert_eq!(
            decode(format, text.as_bytes()).unwrap_err().to_string(),
            expected
        );
    };
    check(RecordFormat::Tsv, "key", "no tab between key and value");
    check(
        RecordFormat::Tsv,
        "k\ta\tb",
        "a bare tab: write it as an escape",
    );
    check(
        RecordFormat::Tsv,
        "k\tv\r",
        "a bare carriage return: write it as an escape",
    );
    for (text, name) in [
        ("k\t\\q", "\\q"),
        ("k\t\\x1", "\\x1"),
        ("k\t\\", "\\"),
        ("k\t\\x+1", "\\x+1"),
    ] {
        check(
            RecordFormat::Tsv,
            text,
            &format!("unknown escape '{name}': \\t, \\n, \\r, \\\\ and \\xHH are known"),
        );
    }
    assert!(matches!(
        decode(RecordFormat::Jsonl, b"{\"key\":\"k\"}"),
        Err(RecordError::Json(_))
    ));
    assert!(matches!(
        decode(
            RecordFormat::Jsonl,
            b"{\"key\":\"k\",\"value\":{\"b64\":\"*\"}}"
        ),
        Err(RecordError::Base64(_))
    ));
}

#[test]
fn a_name_suggests_its_format() {
    assert_eq!(RecordFormat::of_name("x.jsonl"), RecordFormat::Jsonl);
    assert_eq!(RecordFormat::of_name("x.tsv"), RecordFormat::Tsv);
    assert_eq!(RecordFormat::of_name("-"), RecordFormat::Tsv);
}

#[test]
fn the_reader_gives_the_place_behind_each_record() {
    let mut reader = RecordReader::new(&b"a\t1\n\nb\t2"[..], RecordFormat::Tsv);
    let (first, offset) = reader.next().unwrap().unwrap();
    assert_eq!((first.key.as_slice(), offset), (&b"a"[..], 4));
    let (second, offset) = reader.next().unwrap().unwrap();
    assert_eq!((second.value.as_slice(), offset), (&b"2"[..], 8));
    assert!(reader.next().unwrap().is_none());
}

#[test]
fn the_reader_names_the_wrong_line() {
    let mut reader = RecordReader::new(&b"a\t1\nb\n"[..], RecordFormat::Tsv);
    reader.next().unwrap();
    let error = reader.next().unwrap_err();
    assert_eq!(error.to_string(), "line 2: no tab between key and value");
}

#[test]
fn reading_resumes_only_at_the_start_of_a_line() {
    let input = b"a\t1\nb\t2\n";
    let resumed = |offset| {
        let mut reader =
            RecordReader::new(BufReader::with_capacity(3, &input[..]), RecordFormat::Tsv);
        reader.skip(offset).map(|()| reader.next().unwrap())
    };
    assert_eq!(resumed(4).unwrap().unwrap().0.key, b"b");
    assert!(resumed(8).unwrap().is_none());
    assert!(matches!(resumed(3), Err(ReadError::NotAtLine(3))));
    assert!(matches!(resumed(9), Err(ReadError::NotAtLine(9))));
}

proptest! {
    #[test]
    fn every_record_survives_both_formats(
        key in proptest::collection::vec(any::<u8>(), 0..40),
        value in proptest::collection::vec(any::<u8>(), 0..80),
    ) {
        for format in [RecordFormat::Tsv, RecordFormat::Jsonl] {
            let text = line(format, &key, &value);
            let text = text.strip_suffix('\n').unwrap();
            prop_assert!(!text.contains('\n'));
            let expected = Record { key: key.clone(), value: value.clone() };
            prop_assert_eq!(decode(format, text.as_bytes()).unwrap(), expected);
        }
    }

    #[test]
    fn arbitrary_lines_never_panic(line in proptest::collection::vec(any::<u8>(), 0..80)) {
        for format in [RecordFormat::Tsv, RecordFormat::Jsonl] {
            drop(decode(format, &line));
        }
    }
}
