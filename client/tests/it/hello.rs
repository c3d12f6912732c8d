//! The first exchange: who may become a connection.

use std::time::Duration;

use kelp_client::{CloseReason, ConnectError, Connection, ConnectionOptions, Login};
use kelp_wire::{ClusterId, NodeId, Opcode, Response, Status};

use crate::network::{CLUSTER, Network, soon, within};

async fn open(network: &Network, options: &ConnectionOptions) -> Result<Connection, ConnectError> {
    Connection::open(network, "a:1", options, soon()).await
}

#[tokio::test(start_paused = true)]
async fn hello_carries_cluster_and_login() {
    let network = Network::new();
    let mut node = network.node("a:1");
    let options = ConnectionOptions {
        cluster: Some(CLUSTER),
        login: Some(Login {
            user: "ann".to_owned(),
            password: "secret".to_owned(),
        }),
        ..ConnectionOptions::default()
    };
    let script = async {
        let mut peer = node.accept_raw().await;
        let hello = peer.next().await;
        assert_eq!(hello.opcode, Opcode::Hello);
        assert!(hello.text.contains("ann"), "{}", hello.text);
        assert!(hello.text.contains("cececece"), "{}", hello.text);
        peer.accept_hello(&hello, CLUSTER).await;
        peer
    };
    let (connection, _peer) = tokio::join!(open(&network, &options), script);
    let connection = connection.unwrap();
    assert_eq!(connection.hello().node, NodeId::new(1));
    assert_eq!(connection.address(), "a:1");
}

#[tokio::test(start_paused = true)]
async fn refusal_is_told_in_the_words_of_the_node() {
    let network = Network::new();
    let mut node = network.node("a:1");
    let script = async {
        let mut peer = node.accept_raw().await;
        let hello = peer.next().await;
        peer.refuse(&hello, Status::Refused).await;
        peer
    };
    let options = ConnectionOptions::default();
    let (connection, _peer) = tokio::join!(open(&network, &options), script);
    let error = connection.unwrap_err();
    assert_eq!(error.to_string(), "a:1 refused, refused: as scripted");
}

#[tokio::test(start_paused = true)]
async fn node_of_another_cluster_is_refused_by_the_client_too() {
    let network = Network::new();
    let mut node = network.node("a:1");
    let options = ConnectionOptions {
        cluster: Some(ClusterId::new([1; 16])),
        ..ConnectionOptions::default()
    };
    let (connection, _peer) = tokio::join!(open(&network, &options), node.accept());
    let error = connection.unwrap_err();
    let ConnectError::Refused { status, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(status, Status::WrongCluster);
}

#[tokio::test(start_paused = true)]
async fn unknown_version_is_refused() {
    let network = Network::new();
    let mut node = network.node("a:1");
    let script = async {
        let mut peer = node.accept_raw().await;
        let hello = peer.next().await;
        let value = [9; 23];
        let response = Response {
            value: &value,
            ..Response::new(hello.id, Opcode::Hello, Status::Ok)
        };
        peer.send(&response).await;
        peer
    };
    let options = ConnectionOptions::default();
    let (connection, _peer) = tokio::join!(open(&network, &options), script);
    let error = connection.unwrap_err().to_string();
    assert!(error.contains("version 9"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn silent_node_is_given_up_at_the_deadline() {
    let network = Network::new();
    let _node = network.node("a:1");
    let deadline = within(Duration::from_millis(300));
    let options = ConnectionOptions::default();
    let error = Connection::open(network.as_ref(), "a:1", &options, deadline)
        .await
        .unwrap_err();
    assert!(matches!(error, ConnectError::TimedOut { .. }), "{error}");
    assert_eq!(tokio::time::Instant::now(), deadline);
}

#[tokio::test(start_paused = true)]
async fn node_that_hangs_up_is_lost() {
    let network = Network::new();
    let mut node = network.node("a:1");
    let script = async { drop(node.accept_raw().await) };
    let options = ConnectionOptions::default();
    let (connection, ()) = tokio::join!(open(&network, &options), script);
    let error = connection.unwrap_err();
    let ConnectError::Lost { reason, .. } = error else {
        panic!("{error}")
    };
    assert!(matches!(
        reason,
        CloseReason::ClosedByNode | CloseReason::Failed { .. }
    ));
}

#[tokio::test(start_paused = true)]
async fn nobody_at_the_address_is_unreachable() {
    let network = Network::new();
    let error = open(&network, &ConnectionOptions::default())
        .await
        .unwrap_err();
    assert!(matches!(error, ConnectError::Unreachable { .. }), "{error}");
}
