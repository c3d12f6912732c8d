//! Requests and replies pass through files; nobody waits for a supervisor that does not run.

use super::*;
use crate::process::cluster_file::ClusterNode;

fn cluster_in(directory: &Path) {
    let node = ClusterNode {
        id: 1,
        name: "n1".to_owned(),
        pid: None,
        client: "127.0.0.1:1".to_owned(),
        resp: None,
        peer: "127.0.0.1:2".to_owned(),
        http: "127.0.0.1:3".to_owned(),
        data_dir: "data".into(),
        log: "log".into(),
    };
    let cluster = ClusterFile {
        cluster_id: "00".repeat(16),
        nodes: vec![node],
    };
    cluster.write(directory).unwrap();
}

#[test]
fn a_request_is_taken_once_and_answered() {
    let directory = tempfile::tempdir().unwrap();
    let layout = Layout::new(directory.path());
    let inbox = ControlInbox::open(&layout).unwrap();
    files::write_atomically(&layout.control().join("7-1.request"), b"kill 2").unwrap();
    let requests = inbox.take().unwrap();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].wish, Some((Action::Kill, 2)));
    inbox
        .answer(&requests[0], &Err("node 2 is down already".to_owned()))
        .unwrap();
    assert_eq!(
        files::read(&layout.control().join("7-1.reply"), 100).unwrap(),
        b"node 2 is down already"
    );
    assert!(inbox.take().unwrap().is_empty());
}

#[test]
fn a_request_that_makes_no_sense_has_no_wish() {
    assert_eq!(parse_wish("start 3\n"), Some((Action::Start, 3)));
    for text in ["", "start", "start x", "burn 1", "start 1 2"] {
        assert_eq!(parse_wish(text), None, "{text}");
    }
}

#[test]
fn the_announcement_names_this_process_until_it_is_closed() {
    let directory = tempfile::tempdir().unwrap();
    let layout = Layout::new(directory.path());
    let inbox = ControlInbox::open(&layout).unwrap();
    assert_eq!(
        read_supervisor(&layout),
        Some(ProcessIdentity::own().unwrap())
    );
    inbox.close().unwrap();
    assert_eq!(read_supervisor(&layout), None);
}

#[tokio::test]
async fn without_a_supervisor_the_command_says_how_to_start_one() {
    let directory = tempfile::tempdir().unwrap();
    let failure = request(directory.path(), Action::Stop, 1)
        .await
        .unwrap_err();
    assert_eq!(failure.exit, Exit::Usage);
    cluster_in(directory.path());
    let failure = request(directory.path(), Action::Stop, 1)
        .await
        .unwrap_err();
    assert_eq!(failure.exit, Exit::Unavailable);
    assert!(failure.message.contains("kelp dev --dir"), "{failure}");
    let failure = request(directory.path(), Action::Stop, 9)
        .await
        .unwrap_err();
    assert_eq!(failure.message, "no node 9: this cluster has nodes 1 to 1");
}
