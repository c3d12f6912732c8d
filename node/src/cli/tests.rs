//! The grammar of the command line, and what is said when it is not kept.

use super::*;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    let matches = command().try_get_matches_from(line.split(' '))?;
    Cli::from_arg_matches(&matches)
}

#[track_caller]
fn check_refused(line: &str, expected: &str) {
    let error = parse(line).unwrap_err();
    let expected = format!("{expected}; --help shows what is possible");
    assert_eq!(usage_line(&error.to_string()), expected);
}

#[test]
fn the_grammar_is_consistent() {
    command().debug_assert();
}

#[test]
fn every_command_is_understood() {
    for line in [
        "kelp dev --nodes 5 --base-port 0 --dir d --keep --restart",
        "kelp dev node kill 2 --dir d",
        "kelp start --dir d --certs c --insecure --join a:1,west=b:1 --resp a:2",
        "kelp start --member id=1,peer=a:1 --member id=2,peer=b:1 --config f",
        "kelp put k v",
        "kelp put k -",
        "kelp put k -5",
        "kelp --endpoints a:1 get k -o raw",
        "kelp del k --timeout 1s",
        "kelp scan a m --limit 3 --reverse",
        "kelp scan --prefix p",
        "kelp scan --prefix -p",
        "kelp scan -5 -1 --limit 3",
        "kelp scan -- -b -m",
        "kelp status -o json",
        "kelp health --dir d --certs c --http 127.0.0.1:1",
        "kelp import - --format jsonl --resume-from 5",
        "kelp export f --resume",
        "kelp bench --reads 50 --operations 10",
        "kelp certs init --ca-dir d",
        "kelp certs issue --ca-dir d --node 1 --out o --host h",
        "kelp config show --client 127.0.0.1:1 -o json",
        "kelp config check",
        "kelp completion bash",
    ] {
        if let Err(error) = parse(line) {
            panic!("{line}: {error}");
        }
    }
}

#[test]
fn a_wrong_line_is_answered_in_one_line() {
    check_refused(
        "kelp put k",
        "the following required arguments were not provided: <VALUE>",
    );
    check_refused(
        "kelp pot k v",
        "unrecognized subcommand 'pot' (a similar subcommand exists: 'put')",
    );
    check_refused(
        "kelp scan a --prefix p",
        "the argument '[START]' cannot be used with '--prefix <TEXT>'",
    );
}

#[test]
fn limits_of_nothing_and_unknown_flags_are_refused() {
    assert!(parse("kelp scan --limit 0").is_err());
    assert!(parse("kelp scan --lmit 3").is_err());
    assert!(parse("kelp bench --rate 0").is_err());
}

#[test]
fn wrong_arguments_and_a_bare_name_are_usage_errors() {
    let run_line = |line: &str| run(line.split(' ').map(OsString::from), &|_| None);
    assert_eq!(run_line("kelp get"), Exit::Usage);
    assert_eq!(run_line("kelp"), Exit::Usage);
    assert_eq!(run_line("kelp get k --endpoints nowhere"), Exit::Usage);
}

#[test]
fn an_unreachable_cluster_is_unavailable() {
    let line = "kelp get k --endpoints 127.0.0.1:1 --timeout 300ms";
    let exit = run(line.split(' ').map(OsString::from), &|_| None);
    assert_eq!(exit, Exit::Unavailable);
}
