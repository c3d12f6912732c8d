use rustls::HandshakeKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::certs::LEAF_LIFETIME;

async fn victim() -> (Authority, TestNode) {
    let authority = authority(CLUSTER, 1);
    let node = TestNode::start(&authority, 1, Arc::new(Scripted::default())).await;
    (authority, node)
}

async fn hasty_victim() -> (Authority, TestNode) {
    let authority = authority(CLUSTER, 1);
    let node = TestNode::start_with(hasty_limits(), &authority, 1).await;
    (authority, node)
}

fn assert_unreachable(result: Result<Bytes, BusError>, expected: &str) {
    match result {
        Err(BusError::Unreachable(reason)) if reason.contains(expected) => {}
        other => panic!("expected unreachable because of {expected:?}, got {other:?}"),
    }
}

#[tokio::test]
async fn dialler_refuses_a_server_of_another_authority() {
    let (_, node) = victim().await;
    let stranger = authority(CLUSTER, 2);
    let links = links(&node_bundle(&stranger, 2), 2, START);
    node.introduce(&links);
    assert_unreachable(call(&links, 1, "echo").await, "tls");
    node.refused(RefusalReason::Handshake).await;
}

#[tokio::test]
async fn acceptor_refuses_a_certificate_of_another_authority() {
    let (ours, node) = victim().await;
    let theirs = node_bundle(&authority(CLUSTER, 2), 2);
    let stream = intrude(&intruder(&node_bundle(&ours, 2), &theirs), &node).await;
    // With TLS 1.3 the dialler is done before the acceptor has judged.
    if let Ok(mut stream) = stream {
        assert!(stream.read_u8().await.is_err());
    }
    node.refused(RefusalReason::Handshake).await;
}

#[tokio::test]
async fn acceptor_refuses_a_hello_of_another_cluster() {
    let (ours, node) = victim().await;
    let bundle = node_bundle(&ours, 2);
    let stream = intrude(&intruder(&bundle, &bundle), &node).await.unwrap();
    let foreign = Hello {
        cluster: ClusterId::new([8; 16]),
        ..hello(2, 1)
    };
    let mut pipe = say_hello(stream, &foreign).await;
    assert_eq!(pipe.read_frame().await.unwrap().kind, FrameKind::Refusal);
    assert!(is_closed(&mut pipe).await);
    node.refused(RefusalReason::Cluster).await;
}

#[tokio::test]
async fn acceptor_refuses_a_node_id_that_is_not_in_the_certificate() {
    let (ours, node) = victim().await;
    let bundle = node_bundle(&ours, 2);
    let stream = intrude(&intruder(&bundle, &bundle), &node).await.unwrap();
    let mut pipe = say_hello(stream, &hello(3, 1)).await;
    assert_eq!(pipe.read_frame().await.unwrap().kind, FrameKind::Refusal);
    node.refused(RefusalReason::Identity).await;
}

#[tokio::test]
async fn acceptor_refuses_a_client_certificate() {
    let (ours, node) = victim().await;
    let rng = SeededRng::new(9);
    let client = ours.issue_client("n2", LEAF_LIFETIME, &*clock_at(START), &rng);
    let client = client.unwrap();
    let stream = intrude(&intruder(&client, &client), &node).await.unwrap();
    let mut pipe = say_hello(stream, &hello(2, 1)).await;
    assert_eq!(pipe.read_frame().await.unwrap().kind, FrameKind::Refusal);
    node.refused(RefusalReason::Identity).await;
}

#[tokio::test]
async fn acceptor_refuses_a_connection_without_certificate() {
    let (ours, node) = victim().await;
    let bundle = node_bundle(&ours, 2);
    let mut roots = rustls::RootCertStore::empty();
    let root = CertificateDer::from_pem_slice(bundle.authority_pem.as_bytes()).unwrap();
    roots.add(root).unwrap();
    let config = rustls::ClientConfig::builder_with_provider(default_provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    if let Ok(mut stream) = intrude(&Arc::new(config), &node).await {
        assert!(stream.read_u8().await.is_err());
    }
    node.refused(RefusalReason::Handshake).await;
}

#[tokio::test]
async fn acceptor_refuses_a_hello_for_another_node_or_from_itself() {
    let (ours, node) = victim().await;
    let bundle = node_bundle(&ours, 2);
    let stream = intrude(&intruder(&bundle, &bundle), &node).await.unwrap();
    let mut pipe = say_hello(stream, &hello(2, 3)).await;
    assert_eq!(pipe.read_frame().await.unwrap().kind, FrameKind::Refusal);
    node.refused(RefusalReason::Target).await;

    let own = node_bundle(&ours, 1);
    let stream = intrude(&intruder(&own, &own), &node).await.unwrap();
    let mut pipe = say_hello(stream, &hello(1, 1)).await;
    assert_eq!(pipe.read_frame().await.unwrap().kind, FrameKind::Refusal);
}

#[tokio::test]
async fn dialler_refuses_another_node_at_the_address() {
    let (ours, node) = victim().await;
    let links = links(&node_bundle(&ours, 2), 2, START);
    links.set_peer_address(node_id(3), node.address());
    assert_unreachable(call(&links, 3, "echo").await, "tls");
    assert!(health_of(&links, 3).last_error.is_some());
}

#[tokio::test]
async fn expired_certificate_is_refused() {
    let ours = authority(CLUSTER, 1);
    let lifetime = u64::try_from(LEAF_LIFETIME.as_millis()).unwrap();
    let later = WallMillis::new(START.get() + lifetime + 2000);
    let handler = Arc::new(Scripted::default());
    let node = TestNode::start_at(&ours, 1, handler, later).await;
    let links = links(&node_bundle(&ours, 2), 2, START);
    node.introduce(&links);
    assert!(call(&links, 1, "echo").await.is_err());
    node.refused(RefusalReason::Handshake).await;
}

#[tokio::test]
async fn plaintext_is_refused() {
    let (_, node) = victim().await;
    let mut stream = node.dial().await;
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    assert!(stream.read_u8().await.is_err());
    node.refused(RefusalReason::Plaintext).await;
}

#[tokio::test]
async fn silent_strangers_do_not_keep_a_peer_out() {
    let authority = authority(CLUSTER, 1);
    let limits = PeerLimits {
        strangers: 2,
        ..PeerLimits::default()
    };
    let node = TestNode::start_with(limits, &authority, 1).await;
    let mut oldest = node.dial().await;
    let _newer = [node.dial().await, node.dial().await];
    assert!(oldest.read_u8().await.is_err());
    let links = links(&node_bundle(&authority, 2), 2, START);
    node.introduce(&links);
    assert_eq!(call(&links, 1, "echo").await.unwrap(), "echo");
}

#[tokio::test]
async fn peers_beyond_the_limit_are_refused_and_the_others_stay() {
    let authority = authority(CLUSTER, 1);
    let limits = PeerLimits {
        connections: 1,
        ..PeerLimits::default()
    };
    let node = TestNode::start_with(limits, &authority, 1).await;
    let [first, second] = [2, 3].map(|number| {
        let links = links(&node_bundle(&authority, number), number, START);
        node.introduce(&links);
        links
    });
    assert_eq!(call(&first, 1, "echo").await.unwrap(), "echo");
    assert_unreachable(call(&second, 1, "echo").await, "too many connections");
    assert_eq!(call(&first, 1, "echo").await.unwrap(), "echo");
    node.refused(RefusalReason::Busy).await;
}

#[tokio::test]
async fn connection_that_says_nothing_is_ended_soon() {
    let authority = authority(CLUSTER, 1);
    let limits = PeerLimits {
        first_byte: Duration::from_millis(50),
        handshake: PATIENCE,
        ..PeerLimits::default()
    };
    let node = TestNode::start_with(limits, &authority, 1).await;
    let mut stream = node.dial().await;
    assert!(stream.read_u8().await.is_err());
    node.refused(RefusalReason::Slow).await;
}

#[tokio::test]
async fn silence_before_the_handshake_is_ended() {
    let (_, node) = hasty_victim().await;
    let mut stream = node.dial().await;
    stream.write_all(&[0x16]).await.unwrap();
    assert!(stream.read_u8().await.is_err());
    node.refused(RefusalReason::Slow).await;
}

#[tokio::test]
async fn silence_before_the_hello_is_ended() {
    let (ours, node) = hasty_victim().await;
    let bundle = node_bundle(&ours, 2);
    let mut stream = intrude(&intruder(&bundle, &bundle), &node).await.unwrap();
    assert!(stream.read_u8().await.is_err());
    node.refused(RefusalReason::Slow).await;
}

#[tokio::test]
async fn long_frame_before_the_hello_is_refused() {
    let (ours, node) = victim().await;
    let bundle = node_bundle(&ours, 2);
    let mut stream = intrude(&intruder(&bundle, &bundle), &node).await.unwrap();
    stream.write_all(&2000_u32.to_be_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    assert!(stream.read_u8().await.is_err());
    node.refused(RefusalReason::Hello).await;
}

#[tokio::test]
async fn frame_over_the_limit_ends_the_connection() {
    let (ours, node) = victim().await;
    let bundle = node_bundle(&ours, 2);
    let stream = intrude(&intruder(&bundle, &bundle), &node).await.unwrap();
    let mut pipe = say_hello(stream, &hello(2, 1)).await;
    assert_eq!(pipe.read_frame().await.unwrap().kind, FrameKind::Welcome);
    let length = u32::try_from(crate::peer::FRAME_BYTES_MAX + 1).unwrap();
    let mut stream = pipe.into_stream();
    stream.write_all(&length.to_be_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    assert!(stream.read_u8().await.is_err());
    let record = || health_of(&node.links, 2);
    wait_until(|| record().accepted == 0).await;
    assert!(record().last_error.unwrap().contains("over the limit"));
}

#[tokio::test]
async fn sessions_are_not_resumed() {
    let (ours, node) = victim().await;
    let bundle = node_bundle(&ours, 2);
    let config = intruder(&bundle, &bundle);
    for _ in 0..2 {
        let stream = intrude(&config, &node).await.unwrap();
        let mut pipe = say_hello(stream, &hello(2, 1)).await;
        // The welcome comes after any ticket would have.
        assert_eq!(pipe.read_frame().await.unwrap().kind, FrameKind::Welcome);
        let (_, session) = pipe.stream().get_ref();
        assert_eq!(session.handshake_kind(), Some(HandshakeKind::Full));
        assert_eq!(session.tls13_tickets_received(), 0);
    }
}
