//! Options are layered, checked, and failed calls get their documented exit codes.

use super::*;

fn none(_: &str) -> Option<String> {
    None
}

#[test]
fn what_stands_nearest_wins() {
    let args = |endpoints: &str| ClientArgs {
        endpoints: Some(endpoints.to_owned()),
        ..ClientArgs::default()
    };
    let environment = |name: &str| (name == "KELP_ENDPOINTS").then(|| "e:1".to_owned());
    let endpoints = |below: ClientArgs, above: ClientArgs, environment: Environment<'_>| {
        below.resolve(above, environment).unwrap().endpoints
    };
    assert_eq!(
        endpoints(args("a:1, b:2"), args("c:1"), &environment),
        ["a:1", "b:2"]
    );
    assert_eq!(
        endpoints(ClientArgs::default(), args("c:1"), &environment),
        ["c:1"]
    );
    assert_eq!(
        endpoints(ClientArgs::default(), ClientArgs::default(), &environment),
        ["e:1"]
    );
    assert_eq!(
        endpoints(ClientArgs::default(), ClientArgs::default(), &none),
        ["127.0.0.1:4800"]
    );
}

#[test]
fn wrong_options_are_usage_errors() {
    let check = |args: ClientArgs, expected: &str| {
        let failure = args.resolve(ClientArgs::default(), &none).unwrap_err();
        assert_eq!(failure.exit, Exit::Usage);
        assert!(failure.message.contains(expected), "{failure}");
    };
    let base = ClientArgs::default;
    check(
        ClientArgs {
            timeout: Some("5".to_owned()),
            ..base()
        },
        "--timeout: '5' needs a unit",
    );
    check(
        ClientArgs {
            timeout: Some("0s".to_owned()),
            ..base()
        },
        "--timeout: 0 leaves no time",
    );
    check(
        ClientArgs {
            endpoints: Some(", ".to_owned()),
            ..base()
        },
        "at least one HOST:PORT",
    );
    check(
        ClientArgs {
            cert: Some("c".into()),
            ..base()
        },
        "--cert and --key together",
    );
    check(
        ClientArgs {
            ca: Some("/nonexistent/ca".into()),
            ..base()
        },
        "/nonexistent/ca: no such file",
    );
}

#[test]
fn consistency_levels_are_parsed() {
    let stale = |milliseconds| Consistency::Stale {
        max_age: Duration::from_millis(milliseconds),
    };
    assert_eq!(
        parse_consistency("linearizable").unwrap(),
        Consistency::Linearizable
    );
    assert_eq!(parse_consistency("stale").unwrap(), stale(1000));
    assert_eq!(parse_consistency("stale:50").unwrap(), stale(50));
    for text in ["stale:", "stale:x", "eventual", "linearizable:1"] {
        assert_eq!(
            parse_consistency(text).unwrap_err().exit,
            Exit::Usage,
            "{text}"
        );
    }
}

#[test]
fn failed_calls_have_their_documented_exit_codes() {
    let refused = |status| ClientError::Refused {
        status,
        message: "no".to_owned(),
    };
    let unavailable = ClientError::Unavailable {
        attempts: 3,
        reached: true,
        reason: "no leader".to_owned(),
    };
    let unknown = ClientError::OutcomeUnknown {
        reason: "connection lost".to_owned(),
    };
    let wrong = ClientError::Configuration {
        problem: "no endpoints".to_owned(),
    };
    for (error, code) in [
        (wrong, 2),
        (unavailable, 3),
        (unknown, 4),
        (refused(Status::TooLarge), 5),
        (refused(Status::WrongCluster), 5),
        (refused(Status::Refused), 5),
        (refused(Status::Unsupported), 2),
        (refused(Status::BadRequest), 2),
    ] {
        assert_eq!(Failure::from(&error).exit.code(), code, "{error}");
    }
}

#[test]
fn an_unavailable_cluster_is_told_from_an_absent_one() {
    let message = |reached| {
        let error = ClientError::Unavailable {
            attempts: 3,
            reached,
            reason: "no".to_owned(),
        };
        Failure::from(&error).message
    };
    assert!(message(true).contains("kelp status"));
    assert!(message(false).contains("is a node running there?"));
}
