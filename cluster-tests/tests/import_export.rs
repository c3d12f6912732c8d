//! A real extract of the Debian package index goes in through one node and comes out of another, byte for byte.
#![expect(
    clippy::disallowed_methods,
    reason = "this test starts programs and writes their input"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use kelp_cluster_tests::{DevCluster, kelp_program};

const INDEX: &str = include_str!("../testdata/debian-packages.txt");

/// Longer than any command takes on a busy machine.
const PATIENCE: &str = "60s";

/// Package names and their stanzas, as `kelp` shall hold them.
fn packages() -> BTreeMap<String, String> {
    let stanzas = INDEX.trim_end().split("\n\n");
    stanzas
        .map(|stanza| {
            let first = stanza.lines().next().expect("a stanza has lines");
            let name = first
                .strip_prefix("Package: ")
                .expect("a stanza begins with its name");
            (name.to_owned(), format!("{stanza}\n"))
        })
        .collect()
}

fn json_lines<'a>(records: impl IntoIterator<Item = (&'a String, &'a String)>) -> String {
    let mut lines = String::new();
    for (key, value) in records {
        lines += &serde_json::json!({"key": key, "value": value}).to_string();
        lines.push('\n');
    }
    lines
}

fn kelp(endpoint: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(kelp_program().expect("it was built before"));
    command
        .args(["--endpoints", endpoint, "--timeout", PATIENCE])
        .args(arguments);
    command.output().expect("the program starts")
}

fn done(endpoint: &str, arguments: &[&str]) -> Vec<u8> {
    let output = kelp(endpoint, arguments);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{arguments:?}: {}: {message}",
        output.status
    );
    output.stdout
}

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary paths are text")
}

#[test]
fn every_package_comes_back_byte_for_byte_through_other_nodes() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = kelp_program().expect("it was built before");
    let cluster = DevCluster::start(&program, &folder.path().join("cluster")).expect("it starts");
    let nodes = cluster.nodes().expect("cluster.json");
    let [first, second, third] = &nodes[..] else {
        panic!("three nodes, not {}", nodes.len());
    };
    let packages = packages();
    assert!(
        packages.len() > 30,
        "the extract has {} packages",
        packages.len()
    );
    let input = folder.path().join("packages.jsonl");
    fs::write(&input, json_lines(&packages)).expect("writable");

    done(&second.client, &["import", text(&input)]);
    for (name, stanza) in &packages {
        let found = done(&third.client, &["-o", "raw", "get", name]);
        assert_eq!(String::from_utf8_lossy(&found), *stanza, "{name}");
    }
    let exported = done(&first.client, &["export", "--format", "jsonl"]);
    assert!(
        exported == json_lines(&packages).as_bytes(),
        "the export differs from the import"
    );

    let records = folder.path().join("packages.tsv");
    done(&third.client, &["export", text(&records)]);
    for name in packages.keys() {
        done(&first.client, &["del", name]);
    }
    done(&first.client, &["import", text(&records)]);
    let again = done(&second.client, &["export", "--format", "jsonl"]);
    assert!(
        again == exported,
        "a round trip through tsv changes something"
    );
    cluster.stop().expect("it stops gracefully");
}

#[test]
fn an_import_that_fails_says_how_far_it_came_and_goes_on_from_there() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = kelp_program().expect("it was built before");
    let cluster = DevCluster::start(&program, &folder.path().join("cluster")).expect("it starts");
    let node = cluster.node(1).expect("cluster.json").client;
    let packages = packages();
    let (half, rest): (Vec<_>, Vec<_>) = packages
        .iter()
        .enumerate()
        .partition(|(number, _)| *number < packages.len() / 2);
    let half = json_lines(half.into_iter().map(|(_, record)| record));
    let rest = json_lines(rest.into_iter().map(|(_, record)| record));
    let input = folder.path().join("packages.jsonl");
    fs::write(&input, format!("{half}{{\"key\": broken\n{rest}")).expect("writable");

    let failed = kelp(&node, &["import", text(&input)]);
    let message = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert!(!failed.status.success(), "{message}");
    let offset = half.len().to_string();
    assert!(
        message.contains(&offset),
        "{message:?} names {offset}, where the good part ends"
    );

    fs::write(&input, format!("{half}{rest}")).expect("writable");
    done(&node, &["import", "--resume-from", &offset, text(&input)]);
    let exported = done(&node, &["export", "--format", "jsonl"]);
    assert!(
        exported == json_lines(&packages).as_bytes(),
        "nothing is missing after the resumption"
    );
}
