//! The file is compared byte by byte with a golden one: other programs read it.

use super::*;

const GOLDEN: &str = include_str!("testdata/cluster.json");

fn node(id: u16, pid: Option<u32>) -> ClusterNode {
    let port = 4790 + 10 * id;
    ClusterNode {
        id,
        name: format!("n{id}"),
        pid,
        client: format!("127.0.0.1:{port}"),
        resp: None,
        peer: format!("127.0.0.1:{}", port + 1),
        http: format!("127.0.0.1:{}", port + 2),
        data_dir: format!("/tmp/kelp/n{id}/data").into(),
        log: format!("/tmp/kelp/n{id}/log").into(),
    }
}

fn cluster() -> ClusterFile {
    ClusterFile {
        cluster_id: "00112233445566778899aabbccddeeff".to_owned(),
        nodes: vec![node(1, Some(4711)), node(2, None)],
    }
}

#[test]
fn the_file_is_the_golden_one() {
    assert_eq!(cluster().encode(), GOLDEN);
}

#[test]
fn a_written_file_is_read_back() {
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(ClusterFile::read(directory.path()).unwrap(), None);
    cluster().write(directory.path()).unwrap();
    assert_eq!(
        ClusterFile::read(directory.path()).unwrap(),
        Some(cluster())
    );
}

#[test]
fn a_file_of_another_kind_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    files::write_atomically(&directory.path().join(CLUSTER_FILE), b"[]").unwrap();
    assert!(ClusterFile::read(directory.path()).is_err());
}

#[test]
fn endpoints_are_joined_by_commas() {
    assert_eq!(cluster().endpoints(), "127.0.0.1:4800,127.0.0.1:4810");
}
