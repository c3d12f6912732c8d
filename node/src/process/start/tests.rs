//! How a node that does not start is explained, and who its members are.

use kelp_client::Transport;

use super::*;
use crate::node::TelemetryMode;

fn settings(members: &[u16]) -> NodeSettings {
    NodeSettings {
        directory: "data".into(),
        certs: "certs".into(),
        name: None,
        client: "127.0.0.1:4800".parse().unwrap(),
        peer: "127.0.0.1:4801".parse().unwrap(),
        http: "127.0.0.1:4802".parse().unwrap(),
        resp: None,
        members: members
            .iter()
            .map(|id| MemberSettings {
                id: *id,
                name: format!("n{id}"),
                peer: format!("127.0.0.{id}:4801"),
                client: format!("127.0.0.{id}:4800"),
                http: format!("127.0.0.{id}:4802"),
            })
            .collect(),
        insecure: false,
        heartbeat: Duration::from_millis(100),
        election_min: Duration::from_millis(250),
        election_max: Duration::from_millis(500),
        telemetry: TelemetryMode::Off,
        stop_grace: Duration::from_secs(5),
        log: "info".to_owned(),
        log_format: logs::LogFormat::Human,
    }
}

fn cluster() -> ClusterId {
    ClusterId::new([7; 16])
}

#[test]
fn a_node_without_data_founds_nothing_unless_told_who_the_members_are() {
    let directory = tempfile::tempdir().unwrap();
    let alone = NodeSettings {
        directory: directory.path().to_owned(),
        ..settings(&[])
    };
    let failure = members(&alone, NodeId::new(4), cluster()).unwrap_err();
    assert_eq!(failure.exit, Exit::Usage);
    assert!(
        failure.message.contains("--join 127.0.0.1:4801"),
        "{failure}"
    );
    files::write_atomically(&directory.path().join(IDENTITY_FILE), b"").unwrap();
    assert_eq!(
        members(&alone, NodeId::new(4), cluster()),
        Ok(BTreeMap::new())
    );
    assert_eq!(
        members(&settings(&[1]), NodeId::new(1), cluster()).map(|members| members.len()),
        Ok(1)
    );
}

#[test]
fn a_node_that_others_cannot_reach_as_told_is_refused() {
    let failure = members(&settings(&[1, 2]), NodeId::new(2), cluster()).unwrap_err();
    assert_eq!(failure.exit, Exit::Usage);
    for port in ["client", "peer", "http"] {
        assert!(
            failure.message.contains(&format!("--{port} 127.0.0.1")),
            "{failure}"
        );
    }
    let named = NodeSettings {
        name: Some("west".to_owned()),
        ..settings(&[1, 2])
    };
    let failure = members(&named, NodeId::new(1), cluster()).unwrap_err();
    assert!(
        failure.message.contains("name n1 but --name west"),
        "{failure}"
    );
}

#[test]
fn a_path_through_a_file_is_told_from_one_that_is_not_writable() {
    let hint = |kind: io::ErrorKind| {
        let failure = start_failure(&StartError::Directory(OpenError::Io {
            action: "create",
            path: "d".into(),
            source: Arc::new(kind.into()),
        }));
        assert_eq!(failure.exit, Exit::Refused);
        failure.message
    };
    assert!(hint(io::ErrorKind::NotADirectory).contains("is a file"));
    assert!(hint(io::ErrorKind::PermissionDenied).contains("writable"));
}

#[test]
fn members_without_this_node_are_refused() {
    let failure = members(&settings(&[1, 2]), NodeId::new(3), cluster()).unwrap_err();
    assert_eq!(failure.exit, Exit::Usage);
    assert!(failure.message.contains("node 3"), "{failure}");
}

#[tokio::test]
async fn a_taken_port_is_unavailable_and_names_the_flag() {
    let listener = TokioTransport
        .listen("127.0.0.1:0".parse().unwrap())
        .await
        .unwrap();
    let address = listener.local_addr().unwrap();
    let source = TokioTransport.listen(address).await.err().unwrap();
    let failure = start_failure(&StartError::Listen {
        port: crate::node::Port::Client,
        address,
        source,
    });
    assert_eq!(failure.exit, Exit::Unavailable);
    assert!(failure.message.contains(&address.to_string()), "{failure}");
    assert!(failure.message.contains("--client"), "{failure}");
}

#[test]
fn directories_of_others_are_refused() {
    let locked = StartError::Directory(OpenError::Locked {
        directory: "d".into(),
    });
    let foreign = StartError::Raft(kelp_raft::StartError::ForeignData {
        node: NodeId::new(9),
        cluster: cluster(),
    });
    for error in [locked, foreign] {
        let failure = start_failure(&error);
        assert_eq!(failure.exit, Exit::Refused);
        assert!(failure.message.contains("--dir"), "{failure}");
    }
}

#[test]
fn an_orphan_does_not_wait_for_a_handover() {
    let wanted = Duration::from_secs(5);
    assert_eq!(End::ParentGone.grace(wanted), ORPHAN_GRACE);
    assert_eq!(End::Terminated.grace(wanted), wanted);
    assert_eq!(End::Interrupted.exit(), Exit::Interrupted);
    assert_eq!(End::Terminated.exit(), Exit::Done);
}
