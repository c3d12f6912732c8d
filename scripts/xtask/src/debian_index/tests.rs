//! Stanzas become one canonical line per package.

use super::*;

const EXTRACT: &str = include_str!("../../../../cluster-tests/testdata/debian-packages.txt");

fn converted(input: &[u8]) -> String {
    let mut output = Vec::new();
    Index::read(input).unwrap().write(&mut output).unwrap();
    String::from_utf8(output).unwrap()
}

#[track_caller]
fn check_refused(input: &[u8], expected: &str) {
    let error = Index::read(input).unwrap_err();
    assert_eq!(format!("{error:#}"), expected);
}

#[test]
fn lines_are_in_the_order_of_names_and_escaped() {
    let input = b"Package: b\nTag: x,\n y\\z\n\n\nPackage: a\nSize: 1\tkB\xff";
    assert_eq!(
        converted(input),
        "a\tPackage: a\\nSize: 1\\tkB\\xff\nb\tPackage: b\\nTag: x,\\n y\\\\z\n"
    );
}

#[test]
fn the_last_version_of_a_package_stays() {
    let index = Index::read(&b"Package: a\nVersion: 1\n\nPackage: a\nVersion: 2\n"[..]).unwrap();
    assert_eq!(index.stanza_count, 2);
    assert_eq!(index.stanzas[&b"a"[..]], b"Package: a\nVersion: 2");
}

#[test]
fn what_is_no_index_is_refused_with_its_place() {
    check_refused(b"", "no stanza on standard input");
    check_refused(
        b"Package: a\n\nSize: 1\n",
        "stanza before line 4: no field 'Package: '",
    );
    check_refused(
        b"Package: \n\n",
        "stanza before line 2: the package has no name",
    );
}

#[test]
fn the_real_extract_keeps_every_stanza() {
    let index = Index::read(EXTRACT.as_bytes()).unwrap();
    assert!(index.stanzas.len() >= 40, "{}", index.stanzas.len());
    for (name, stanza) in &index.stanzas {
        let text = String::from_utf8(stanza.clone()).unwrap();
        assert!(EXTRACT.contains(&format!("{text}\n")), "{text}");
        assert!(text.starts_with(&format!("Package: {}", String::from_utf8_lossy(name))));
    }
}
