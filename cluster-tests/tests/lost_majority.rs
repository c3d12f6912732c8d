//! What a node does that has lost the others.

use std::time::Duration;

use kelp_client::{Client, Executed};
use kelp_cluster_tests::{DevCluster, kelp_program};

/// Longer than an election takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn writes_are_refused_by_name_of_the_missing_and_resume_when_one_returns() {
    let directory = tempfile::tempdir().unwrap();
    let cluster = DevCluster::start(&kelp_program().unwrap(), &directory.path().join("c")).unwrap();
    let survivor = cluster.node(1).unwrap();
    let client = Client::builder()
        .endpoints([survivor.client])
        .timeout(Duration::from_secs(3))
        .build()
        .unwrap();
    client.put("key", "before").await.unwrap();

    cluster.kill(&[2, 3]).await.unwrap();
    // The first write may have been proposed before the loss was noticed: its outcome is unknown.
    let mut refusal = client.put("key", "lost").await.unwrap_err();
    if refusal.executed() == Executed::Unknown {
        refusal = client.put("other", "lost").await.unwrap_err();
    }
    assert_eq!(refusal.executed(), Executed::No, "{refusal}");
    let text = refusal.to_string();
    assert!(
        text.contains("n2") && text.contains("n3"),
        "the missing voters are named: {text}"
    );

    cluster.restart(2).unwrap();
    let resumed = tokio::time::timeout(PATIENCE, async {
        while client.put("key", "after").await.is_err() {}
    });
    resumed
        .await
        .expect("writes resume when a majority is back");
    assert_eq!(client.get("key").await.unwrap().unwrap().value, "after");
    cluster.stop().unwrap();
}
