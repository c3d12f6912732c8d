//! What is no longer in memory is read from the disk, and answered the same.

use bytes::Bytes;
use futures_util::future::join_all;
use kelp_client::{Client, ScanOptions};
use kelp_seams::{Rng as _, SeededRng};

use crate::cluster::{TestCluster, eventually};

/// Twice what a memtable holds before it is frozen.
const VALUES: u64 = 512;
const VALUE_BYTES: usize = 64 << 10;

/// Reads that a client has outstanding on its connection: more than go to the disk at once.
const READS_AT_ONCE: usize = 64;

#[test]
fn what_was_flushed_is_read_through_every_node_also_after_a_restart() {
    let mut cluster = TestCluster::start(3);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
    let records: Vec<(Bytes, Bytes)> = (0..VALUES).map(record).collect();
    runtime.block_on(async {
        for chunk in records.chunks(READS_AT_ONCE) {
            let client = cluster.client(1);
            let written = join_all(chunk.iter().map(|(key, value)| client.put(key, value))).await;
            assert!(written.iter().all(Result::is_ok), "{written:?}");
        }
        for at in 0..3 {
            eventually(async || (cluster.table_count(at) > 0).then_some(())).await;
            assert_reads(&cluster.client(at), &records).await;
        }
    });
    for at in 0..3 {
        cluster.stop(at);
    }
    for at in 0..3 {
        assert!(cluster.table_count(at) > 0, "tables outlive the process");
        cluster.start_node(at);
    }
    cluster.wait_for_leader();
    runtime.block_on(async {
        for at in 0..3 {
            assert_reads(&cluster.client(at), &records).await;
        }
    });
}

/// A record whose value cannot be compressed.
fn record(number: u64) -> (Bytes, Bytes) {
    let mut value = vec![0; VALUE_BYTES];
    SeededRng::new(number).fill(&mut value);
    (Bytes::from(format!("disk/{number:04}")), value.into())
}

/// Every record, one by one with many outstanding, and all of them in one scan.
async fn assert_reads(client: &Client, records: &[(Bytes, Bytes)]) {
    for chunk in records.chunks(READS_AT_ONCE) {
        let found = join_all(chunk.iter().map(|(key, _)| client.get(key))).await;
        for ((key, value), found) in chunk.iter().zip(found) {
            let found = found.expect("the read is served");
            assert!(
                found.is_some_and(|found| found.value == value),
                "{key:?} differs"
            );
        }
    }
    let absent = client.get("disk/absent").await;
    assert_eq!(absent.expect("the read is served"), None);
    let mut scan = client.scan(ScanOptions::default());
    let mut expected = records.iter();
    while let Some(page) = scan.next_page().await.expect("the scan is served") {
        for found in page.records {
            let (key, value) = expected.next().expect("no more records than were written");
            assert!(found.key == key && found.value == value, "{key:?} differs");
        }
    }
    assert_eq!(expected.next(), None, "the scan ends with the last record");
}
