//! Nodes whose data directory was emptied.

use super::*;

const ANOTHER: DatabaseId = DatabaseId::from_bytes([99; 16]);

/// Links of node `number` on another directory than the one that it had.
fn replaced(authority: &Authority, number: u16, known: Known) -> PeerLinks {
    let (limits, transport) = (PeerLimits::default(), Arc::new(TokioTransport));
    let bundle = node_bundle(authority, number);
    links_of((ANOTHER, known), limits, transport, &bundle, number, START)
}

fn emptied(authority: &Authority, number: u16) -> PeerLinks {
    replaced(authority, number, Known(|_| None))
}

fn text_of(result: Result<Bytes, BusError>) -> String {
    match result {
        Err(BusError::Unreachable(text)) => text,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[tokio::test]
async fn acceptor_refuses_an_emptied_node_which_learns_it() {
    let authority = authority(CLUSTER, 1);
    let handler = Arc::new(Scripted::default());
    let node = TestNode::start(&authority, 1, handler.clone()).await;
    let links = emptied(&authority, 2);
    node.introduce(&links);
    assert!(!links.is_disowned());
    let text = text_of(call(&links, 1, "echo").await);
    assert!(text.contains("emptied or replaced"), "{text}");
    assert!(links.is_disowned());
    node.refused(RefusalReason::Emptied).await;
    assert!(lock(&handler.seen).is_empty(), "no request is handled");
}

#[tokio::test]
async fn dialler_refuses_an_emptied_node_which_learns_it() {
    let authority = authority(CLUSTER, 1);
    let handler = Arc::new(Scripted::default());
    let node = TestNode::over(emptied(&authority, 2), 2, handler.clone()).await;
    let links = links(&node_bundle(&authority, 1), 1, START);
    node.introduce(&links);
    let text = text_of(call(&links, 2, "echo").await);
    assert!(text.contains("emptied or replaced"), "{text}");
    tokio::time::timeout(PATIENCE, node.links.disowned())
        .await
        .expect("the dialler tells it");
    assert!(lock(&handler.seen).is_empty(), "no request is sent");
    assert!(!links.is_disowned());
}

#[tokio::test]
async fn node_that_no_state_knows_is_let_in() {
    let authority = authority(CLUSTER, 1);
    let unknowing = emptied(&authority, 1);
    let node = TestNode::over(unknowing, 1, Arc::new(Scripted::default())).await;
    let links = emptied(&authority, 2);
    node.introduce(&links);
    assert_eq!(call(&links, 1, "echo").await, Ok(Bytes::from("echo")));
    assert!(!links.is_disowned());
}

#[tokio::test]
async fn node_whose_directory_its_own_state_knows_believes_no_peer_that_denies_it() {
    let authority = authority(CLUSTER, 1);
    let node = TestNode::start(&authority, 1, Arc::new(Scripted::default())).await;
    let known = Known(|node| (node == node_id(2)).then_some(ANOTHER));
    let links = replaced(&authority, 2, known);
    node.introduce(&links);
    text_of(call(&links, 1, "echo").await);
    assert!(!links.is_disowned());
}
