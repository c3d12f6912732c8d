//! Which layer wins, and what a wrong file is told.

use super::*;

const FILE: &str =
    "client = \"10.0.0.1:1\"\nhttp = \"10.0.0.1:2\"\njoin = [\"a:1\", \"b:2\"]\ninsecure = true\n";

fn layers() -> Layers {
    let mut layers = Layers::with_flags(BTreeMap::from([("client", "10.0.0.3:1".to_owned())]));
    layers.add_environment(&|variable| match variable {
        "KELP_CLIENT" => Some("10.0.0.2:1".to_owned()),
        "KELP_PEER" => Some("10.0.0.2:2".to_owned()),
        "KELP_NAME" => Some(String::new()),
        _ => None,
    });
    assert_eq!(layers.add_file(Path::new("kelp.toml"), FILE), []);
    layers
}

fn check(name: &str, text: &str, origin: &str) {
    let merged = layers().merge();
    let value = merged.get(name).unwrap();
    assert_eq!(
        (value.text.as_str(), value.origin.to_string().as_str()),
        (text, origin)
    );
}

#[test]
fn the_highest_layer_that_has_a_value_wins() {
    check("client", "10.0.0.3:1", "flag --client");
    check("peer", "10.0.0.2:2", "environment KELP_PEER");
    check("http", "10.0.0.1:2", "file kelp.toml");
    check("heartbeat", "100ms", "default");
}

#[test]
fn lists_and_switches_of_the_file_become_text() {
    check("join", "a:1,b:2", "file kelp.toml");
    check("insecure", "true", "file kelp.toml");
}

#[test]
fn an_empty_variable_counts_as_not_given() {
    assert_eq!(layers().merge().get("name"), None);
}

#[test]
fn every_fault_of_a_file_is_listed_with_a_hint() {
    let mut layers = Layers::default();
    let faults = layers.add_file(
        Path::new("kelp.toml"),
        "election-min = \"1s\"\nclient = 4800\ninsecure = \"yes\"\njoin = \"a:1\"\nport = 1\n",
    );
    let mut lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
    lines.sort();
    assert_eq!(
        lines,
        [
            "kelp.toml: 'client' must be a text in quotes",
            "kelp.toml: 'insecure' must be true or false",
            "kelp.toml: 'join' must be a list of texts in quotes",
            "kelp.toml: unknown key 'election-min', did you mean 'election_min'?",
            "kelp.toml: unknown key 'port'",
        ]
    );
}

#[test]
fn a_file_that_is_not_toml_names_the_line() {
    let mut layers = Layers::default();
    let faults = layers.add_file(Path::new("kelp.toml"), "client = \n");
    assert!(
        matches!(&faults[..], [FileError::Syntax { message, .. }] if message.contains("line 1"))
    );
}
