//! Figures are counted, merged and printed as they were measured.

use bytes::Bytes;

use super::*;

fn setup() -> Setup {
    Setup {
        endpoints: vec!["127.0.0.1:4800".to_owned()],
        clients: 2,
        pipeline: 4,
        outstanding: 8,
        value_bytes: 100,
        keys: 1000,
        distribution: "uniform",
        read_percent: 0,
        rate: None,
        seed: 1,
    }
}

fn report() -> Report {
    let write = Operation::Write {
        key: Bytes::new(),
        value: Bytes::new(),
    };
    let mut tally = Tally::new();
    for milliseconds in 1..=100 {
        tally.count(&write, Ok(()), Duration::from_millis(milliseconds));
    }
    for executed in [Executed::No, Executed::Unknown, Executed::Unknown] {
        tally.count(&write, Err(executed), Duration::from_secs(1));
    }
    let measured = Measured {
        elapsed: Duration::from_secs(2),
        cpu_seconds: 0.256,
        tally,
    };
    Report::new(setup(), &measured)
}

#[test]
fn latencies_are_those_of_answered_requests_alone() {
    let report = report();
    assert_eq!(report.operations, 100);
    assert!((report.operations_per_second - 50.0).abs() < 0.1);
    assert!((report.writes_us.p50 - 50_000.0).abs() < 200.0);
    assert!((report.latency_us.max - 100_000.0).abs() < 200.0);
    assert_eq!(report.reads_us.count, 0);
}

#[test]
fn json_names_every_figure() {
    let parsed: serde_json::Value = serde_json::from_str(&report().json()).unwrap();
    assert_eq!(parsed["outstanding"], 8);
    assert_eq!(parsed["operations"], 100);
    assert_eq!(parsed["errors"], 3);
    assert_eq!(parsed["errors_unknown"], 2);
    assert_eq!(parsed["cpu_seconds"], 0.26);
    assert!(parsed["latency_us"]["p99"].as_f64().unwrap() > 95_000.0);
    assert!(parsed["rate"].is_null());
}

#[test]
fn the_table_leaves_out_what_was_not_asked_for() {
    let table = report().table();
    assert!(table.contains("100 operations in 2.0 s: 50/s"), "{table}");
    assert!(table.contains("writes"), "{table}");
    assert!(!table.contains("\nreads"), "{table}");
}

#[test]
fn a_benchmark_without_one_success_has_failed() {
    assert_eq!(report().verdict(), Ok(Exit::Done));
    let verdict = |outcomes: &[Executed]| {
        let read = Operation::Read { key: Bytes::new() };
        let mut tally = Tally::new();
        for executed in outcomes {
            tally.count(&read, Err(*executed), Duration::ZERO);
        }
        let measured = Measured {
            elapsed: Duration::from_secs(1),
            cpu_seconds: 0.0,
            tally,
        };
        Report::new(setup(), &measured).verdict()
    };
    let exit = |outcomes: &[Executed]| verdict(outcomes).unwrap_err().exit;
    assert_eq!(exit(&[Executed::No, Executed::No]), Exit::Unavailable);
    assert_eq!(exit(&[Executed::No, Executed::Unknown]), Exit::Unknown);
    assert_eq!(verdict(&[]), Ok(Exit::Done));
}
