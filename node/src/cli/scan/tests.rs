//! Which keys are meant, and how a record is printed.

use kelp_client::Revision;

use super::*;

fn printed(format: OutputFormat, keys_only: bool) -> String {
    let record = ScanRecord {
        key: Bytes::from_static(b"a\tb"),
        value: Bytes::from_static(b"1\n"),
        revision: Revision::new(7),
    };
    let mut out = Vec::new();
    write_record(&mut out, &record, format, keys_only).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn every_format_prints_a_line_per_record() {
    assert_eq!(printed(OutputFormat::Table, false), "a\\tb\t1\\n\n");
    assert_eq!(printed(OutputFormat::Table, true), "a\\tb\n");
    assert_eq!(printed(OutputFormat::Raw, false), "1\n\n");
    assert_eq!(printed(OutputFormat::Raw, true), "a\tb\n");
    assert_eq!(
        printed(OutputFormat::Json, true),
        "{\"key\":\"a\\tb\",\"revision\":7}\n"
    );
    assert!(printed(OutputFormat::Json, false).contains("\"value\":\"1\\n\""));
}

#[test]
fn ranges_and_prefixes_are_told_apart() {
    let text = |text: &str| Some(OsString::from(text));
    assert_eq!(range(None, None, None), ScanRange::All);
    assert_eq!(
        range(None, None, text("p")),
        ScanRange::Prefix(Bytes::from_static(b"p"))
    );
    let between = |start: &'static str, end: Option<&'static str>| ScanRange::Between {
        start: Bytes::from_static(start.as_bytes()),
        end: end.map(|end| Bytes::from_static(end.as_bytes())),
    };
    assert_eq!(range(text("a"), None, None), between("a", None));
    assert_eq!(range(text("a"), text("m"), None), between("a", Some("m")));
    assert_eq!(range(text("a"), text(""), None), between("a", None));
}
