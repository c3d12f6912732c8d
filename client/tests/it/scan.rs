//! Scans: pages, cursors, limits, and pages that make no sense.

use bytes::{Bytes, BytesMut};
use futures_util::TryStreamExt;
use kelp_client::{ClientError, ScanOptions, ScanRange};
use kelp_wire::{Response, Revision, ScanEntry, Status};

use crate::network::{Asked, Network, Peer, client};

fn page(keys: &[&str]) -> BytesMut {
    let mut page = BytesMut::new();
    for key in keys {
        let entry = ScanEntry {
            key: key.as_bytes(),
            value: b"v",
            revision: Revision::new(65_536),
        };
        entry.encode(&mut page);
    }
    page
}

async fn send_page(peer: &mut Peer, asked: &Asked, keys: &[&str], cursor: &str) {
    let response = Response {
        key: cursor.as_bytes(),
        value: &page(keys),
        ..Response::new(asked.id, asked.opcode, Status::Ok)
    };
    peer.send(&response).await;
}

fn names(pages: &[kelp_client::ScanPage]) -> Vec<&[u8]> {
    let records = pages.iter().flat_map(|page| &page.records);
    records.map(|record| record.key.as_ref()).collect()
}

#[tokio::test(start_paused = true)]
async fn pages_follow_the_cursor_to_the_end() {
    let network = Network::new();
    let mut node = network.node("a:1");
    let scan = client(&network, &["a:1"]).scan(ScanOptions {
        range: ScanRange::Between {
            start: Bytes::from_static(b"a"),
            end: Some(Bytes::from_static(b"z")),
        },
        ..ScanOptions::default()
    });
    let script = async {
        let mut peer = node.accept().await;
        let asked = peer.next().await;
        assert_eq!(asked.key, b"a");
        assert!(asked.text.contains("Before([122])"), "{}", asked.text);
        send_page(&mut peer, &asked, &["a", "b"], "one").await;
        let asked = peer.next().await;
        assert_eq!(asked.key, b"one");
        assert!(asked.text.contains("Before([122])"), "{}", asked.text);
        send_page(&mut peer, &asked, &[], "two").await;
        let asked = peer.next().await;
        assert_eq!(asked.key, b"two");
        send_page(&mut peer, &asked, &["c"], "").await;
        peer
    };
    let pages = scan.into_stream().try_collect::<Vec<_>>();
    let (pages, _peer) = tokio::join!(pages, script);
    assert_eq!(names(&pages.unwrap()), [b"a", b"b", b"c"]);
}

#[tokio::test(start_paused = true)]
async fn limit_counts_over_all_pages() {
    let network = Network::new();
    let mut node = network.node("a:1");
    let scan = client(&network, &["a:1"]).scan(ScanOptions {
        range: ScanRange::Prefix(Bytes::from_static(b"p")),
        limit: Some(3),
        page_records_max: Some(2),
        keys_only: true,
        reverse: true,
        ..ScanOptions::default()
    });
    let script = async {
        let mut peer = node.accept().await;
        let asked = peer.next().await;
        for part in [
            "Prefix([112])",
            "limit: Some(2)",
            "reverse: true",
            "keys_only: true",
        ] {
            assert!(asked.text.contains(part), "{part} in {}", asked.text);
        }
        send_page(&mut peer, &asked, &["p3", "p2"], "one").await;
        let asked = peer.next().await;
        for part in [
            "Unbounded",
            "limit: Some(1)",
            "cursor: Some([111, 110, 101])",
        ] {
            assert!(asked.text.contains(part), "{part} in {}", asked.text);
        }
        send_page(&mut peer, &asked, &["p1"], "two").await;
        peer
    };
    let pages = scan.into_stream().try_collect::<Vec<_>>();
    let (pages, _peer) = tokio::join!(pages, script);
    assert_eq!(names(&pages.unwrap()), [b"p3", b"p2", b"p1"]);
}

#[tokio::test(start_paused = true)]
async fn limit_of_nothing_asks_nothing() {
    let network = Network::new();
    let mut scan = client(&network, &["a:1"]).scan(ScanOptions {
        limit: Some(0),
        ..ScanOptions::default()
    });
    assert_eq!(scan.next_page().await, Ok(None));
}

#[tokio::test(start_paused = true)]
async fn lost_page_is_read_from_another_node() {
    let network = Network::new();
    let (mut a, mut b) = (network.node("a:1"), network.node("b:1"));
    let scan = client(&network, &["a:1", "b:1"]).scan(ScanOptions::default());
    let script = async {
        let mut peer = a.accept().await;
        let asked = peer.next().await;
        send_page(&mut peer, &asked, &["a"], "one").await;
        peer.next().await;
        drop(peer);
        let mut peer = b.accept().await;
        let asked = peer.next().await;
        assert_eq!(asked.key, b"one");
        send_page(&mut peer, &asked, &["b"], "").await;
        peer
    };
    let pages = scan.into_stream().try_collect::<Vec<_>>();
    let (pages, _peer) = tokio::join!(pages, script);
    assert_eq!(names(&pages.unwrap()), [b"a", b"b"]);
}

/// Answers the second page with `second`, and expects the scan to refuse it.
async fn check_refused(second: &[u8], cursor: &str, expected: &str) {
    let network = Network::new();
    let mut node = network.node("a:1");
    let mut scan = client(&network, &["a:1"]).scan(ScanOptions {
        limit: Some(2),
        ..ScanOptions::default()
    });
    let script = async {
        let mut peer = node.accept().await;
        let asked = peer.next().await;
        send_page(&mut peer, &asked, &["a"], "one").await;
        let asked = peer.next().await;
        let response = Response {
            key: cursor.as_bytes(),
            value: second,
            ..Response::new(asked.id, asked.opcode, Status::Ok)
        };
        peer.send(&response).await;
        peer
    };
    let pages = async {
        scan.next_page().await.expect("the first page is sound");
        scan.next_page().await
    };
    let (refused, _peer) = tokio::join!(pages, script);
    let Err(ClientError::UnexpectedReply { problem, .. }) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(problem, expected);
}

#[tokio::test(start_paused = true)]
async fn pages_that_make_no_sense_are_refused() {
    check_refused(&page(&["b"])[..5], "two", "scan page is cut short").await;
    check_refused(&page(&["b"]), "one", "scan cursor stands still").await;
    check_refused(&page(&["b", "c"]), "", "scan page is longer than asked for").await;
}
