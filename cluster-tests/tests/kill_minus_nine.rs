//! Real processes, killed as `kill -9` does while they are written to.

use std::time::Duration;

use kelp_cluster_tests::chaos::{self, ChaosOptions};
use kelp_cluster_tests::kelp_program;

/// Leaders and others, now and then all at once; half of them come back with a torn log.
const ROUNDS: u32 = 10;

#[tokio::test]
async fn nothing_acknowledged_is_lost_when_nodes_are_killed_under_load() {
    let directory = tempfile::tempdir().unwrap();
    let options = ChaosOptions {
        program: kelp_program().unwrap(),
        directory: directory.path().join("cluster"),
        rounds: ROUNDS,
        writers: 12,
        keys_per_writer: 20,
        value_bytes: 100,
        fill: false,
        calm: Duration::from_millis(500),
        seed: 7,
    };
    let report = chaos::run(&options, |line| println!("{line}"))
        .await
        .unwrap();
    assert_eq!(report.violations, []);
    let torn = report.rounds.iter().any(|round| !round.torn.is_empty());
    assert!(torn, "a torn log was among the rounds");
    assert!(
        report.ledger.acknowledged_count() > 1000,
        "there was load: {:?}",
        report.rounds
    );
}
