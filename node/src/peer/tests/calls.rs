use std::net::SocketAddr;

use kelp_client::{Datagrams, Listener};

use super::*;

async fn pair(handler: Arc<Scripted>) -> (TestNode, PeerLinks) {
    let authority = authority(CLUSTER, 1);
    let node = TestNode::start(&authority, 1, handler).await;
    let links = links(&node_bundle(&authority, 2), 2, START);
    node.introduce(&links);
    (node, links)
}

#[tokio::test]
async fn call_is_answered_and_health_tells_of_it() {
    let (node, links) = pair(Arc::default()).await;
    assert_eq!(call(&links, 1, "echo").await.unwrap(), "echo");
    wait_until(|| health_of(&links, 1).round_trip.is_some()).await;
    let dialled = health_of(&links, 1);
    assert!(dialled.connected);
    assert_eq!(
        (dialled.dialled, dialled.accepted, dialled.dials),
        (1, 0, 1)
    );
    assert!(dialled.last_heard.is_some() && dialled.last_error.is_none());
    assert!(dialled.sent_bytes > 0 && dialled.received_bytes > 0);
    let accepted = health_of(&node.links, 2);
    assert_eq!((accepted.dialled, accepted.accepted), (0, 1));
}

#[tokio::test]
async fn calls_of_a_class_are_delivered_in_order() {
    let handler = Arc::new(Scripted::default());
    let (_node, links) = pair(Arc::clone(&handler)).await;
    let classes = [
        PeerClass::Control,
        PeerClass::Append,
        PeerClass::Forward,
        PeerClass::Snapshot,
    ];
    let mut replies = Vec::new();
    for number in 0..500_u32 {
        for class in classes {
            let request = Bytes::copy_from_slice(&number.to_be_bytes());
            replies.push(links.call(node_id(1), class, request, PATIENCE));
        }
    }
    for reply in replies {
        reply.await.unwrap();
    }
    let seen = lock(&handler.seen);
    assert_eq!(seen.len(), 2000);
    for class in classes {
        let numbers = seen
            .iter()
            .filter(|(_, seen_class, _)| *seen_class == class);
        let numbers: Vec<_> = numbers.map(|(from, _, request)| (*from, request)).collect();
        for (expected, (from, request)) in (0..500_u32).zip(numbers) {
            assert_eq!(from, node_id(2));
            assert_eq!(request.as_ref(), expected.to_be_bytes());
        }
    }
}

#[tokio::test]
async fn reply_overtakes_a_slower_one() {
    let (_node, links) = pair(Arc::default()).await;
    let stuck = Bytes::from_static(b"stuck");
    let stuck = links.call(node_id(1), PeerClass::Control, stuck, PATIENCE);
    assert_eq!(call(&links, 1, "echo").await.unwrap(), "echo");
    assert!(stuck.now_or_never().is_none());
}

#[tokio::test]
async fn call_ends_at_its_deadline() {
    let (_node, links) = pair(Arc::default()).await;
    call(&links, 1, "echo").await.unwrap();
    let stuck = Bytes::from_static(b"stuck");
    let deadline = Duration::from_millis(100);
    let reply = links.call(node_id(1), PeerClass::Control, stuck, deadline);
    assert_eq!(reply.await, Err(BusError::Timeout));
    assert_eq!(call(&links, 1, "echo").await.unwrap(), "echo");
}

#[tokio::test]
async fn broken_link_loses_sent_calls_and_the_next_call_dials_again() {
    let (_node, links) = pair(Arc::default()).await;
    let stuck = Bytes::from_static(b"stuck");
    let stuck = links.call(node_id(1), PeerClass::Control, stuck, PATIENCE);
    assert!(matches!(
        call(&links, 1, "break").await,
        Err(BusError::Lost(_))
    ));
    assert!(matches!(stuck.await, Err(BusError::Lost(_))));
    assert_eq!(call(&links, 1, "echo").await.unwrap(), "echo");
    assert_eq!(health_of(&links, 1).dials, 2);
}

#[tokio::test]
async fn restarted_peer_is_reached_at_its_new_address() {
    let authority = authority(CLUSTER, 1);
    let node = TestNode::start(&authority, 1, Arc::new(Scripted::default())).await;
    let links = links(&node_bundle(&authority, 2), 2, START);
    node.introduce(&links);
    call(&links, 1, "echo").await.unwrap();
    node.server.stop().await;
    wait_until(|| health_of(&links, 1).dialled == 0).await;
    for _ in 0..3 {
        let refused = call(&links, 1, "echo").await;
        assert!(
            matches!(refused, Err(BusError::Unreachable(_))),
            "{refused:?}"
        );
    }
    let again = TestNode::start(&authority, 1, Arc::new(Scripted::default())).await;
    again.introduce(&links);
    assert_eq!(call(&links, 1, "echo").await.unwrap(), "echo");
}

#[tokio::test]
async fn peer_that_closes_at_once_is_not_dialled_in_a_loop() {
    let (_node, links) = pair(Arc::default()).await;
    let mut dialled = 0;
    while let Err(BusError::Lost(_)) = call(&links, 1, "break").await {
        dialled += 1;
        assert!(dialled < 10, "the pauses grow, yet none was met");
    }
    assert!(dialled >= 2, "the first failure costs no pause");
    assert_eq!(health_of(&links, 1).dials, dialled);
}

#[tokio::test]
async fn large_requests_pass_and_oversize_ones_are_refused() {
    let (_node, links) = pair(Arc::default()).await;
    let call = |bytes: usize| {
        let request = Bytes::from(vec![5; bytes]);
        links.call(node_id(1), PeerClass::Append, request, PATIENCE)
    };
    let (small, large, small_again) = (call(100), call(3 * 1024 * 1024), call(20_000));
    assert_eq!(small.await.unwrap().len(), 100);
    assert_eq!(large.await.unwrap().len(), 3 * 1024 * 1024);
    assert_eq!(small_again.await.unwrap().len(), 20_000);
    let refused = call(crate::peer::FRAME_BYTES_MAX).await;
    assert!(matches!(refused, Err(BusError::Unreachable(_))));
}

#[tokio::test]
async fn node_does_not_call_itself_or_an_unknown_peer() {
    let (_node, links) = pair(Arc::default()).await;
    links.set_peer_address(node_id(2), "127.0.0.1:1".to_owned());
    assert!(matches!(
        call(&links, 2, "echo").await,
        Err(BusError::Unreachable(_))
    ));
    assert!(matches!(
        call(&links, 9, "echo").await,
        Err(BusError::Unreachable(_))
    ));
}

#[tokio::test]
async fn newer_connection_of_a_class_ends_the_older_one() {
    let authority = authority(CLUSTER, 1);
    let node = TestNode::start(&authority, 1, Arc::new(Scripted::default())).await;
    let bundle = node_bundle(&authority, 2);
    let config = intruder(&bundle, &bundle);
    let mut older = say_hello(intrude(&config, &node).await.unwrap(), &hello(2, 1)).await;
    assert_eq!(older.read_frame().await.unwrap().kind, FrameKind::Welcome);
    let mut newer = say_hello(intrude(&config, &node).await.unwrap(), &hello(2, 1)).await;
    assert_eq!(newer.read_frame().await.unwrap().kind, FrameKind::Welcome);
    assert!(is_closed(&mut older).await);
    newer.push(FrameKind::Ping, 4, &Bytes::new());
    std::future::poll_fn(|context| newer.poll_write(context))
        .await
        .unwrap();
    assert_eq!(newer.read_frame().await.unwrap().kind, FrameKind::Pong);
    assert_eq!(health_of(&node.links, 2).accepted, 1);
}

#[tokio::test]
async fn stopped_links_fail_open_and_later_calls() {
    let (_node, links) = pair(Arc::default()).await;
    call(&links, 1, "echo").await.unwrap();
    let stuck = Bytes::from_static(b"stuck");
    let stuck = links.call(node_id(1), PeerClass::Control, stuck, PATIENCE);
    links.stop().await;
    assert!(stuck.await.is_err());
    assert!(matches!(
        call(&links, 1, "echo").await,
        Err(BusError::Unreachable(_))
    ));
}

fn impatient_limits() -> PeerLimits {
    PeerLimits {
        ping_interval: Duration::from_millis(5),
        silence: Duration::from_millis(30),
        ..PeerLimits::default()
    }
}

#[tokio::test]
async fn dialler_gives_up_on_a_silent_peer() {
    let authority = authority(CLUSTER, 1);
    let listener = TokioTransport.listen("127.0.0.1:0".parse().unwrap()).await;
    let listener = listener.unwrap();
    let (bundle, transport) = (node_bundle(&authority, 2), Arc::new(TokioTransport));
    let links = links_with(impatient_limits(), transport, &bundle, 2, START);
    links.set_peer_address(node_id(1), listener.local_addr().unwrap().to_string());
    let server = material(&node_bundle(&authority, 1), clock_at(START));
    let server = PeerTls::new(&server, CLUSTER, node_id(1)).unwrap();
    let mute = async {
        let (stream, _) = listener.accept().await.unwrap();
        let mut pipe = FramePipe::new(server.accept(stream).await.unwrap());
        pipe.read_frame().await.unwrap();
        let mut welcome = bytes::BytesMut::new();
        super::super::Welcome {
            version: 1,
            cluster: CLUSTER,
            node: node_id(1),
            boot: Boot::new(1),
            directory: directory(1),
        }
        .encode(&mut welcome);
        pipe.write_frame(FrameKind::Welcome, &welcome.freeze())
            .await
            .unwrap();
        pipe.lift_limit();
        while pipe.read_frame().await.is_ok() {}
    };
    let (lost, ()) = tokio::join!(call(&links, 1, "echo"), mute);
    match lost {
        Err(BusError::Lost(reason)) if reason.contains("silent") => {}
        other => panic!("expected a lost call, got {other:?}"),
    }
}

#[tokio::test]
async fn pings_keep_an_idle_connection_and_a_slow_handler_does_not_break_it() {
    let authority = authority(CLUSTER, 1);
    let node = TestNode::start(&authority, 1, Arc::new(Scripted::default())).await;
    let (bundle, transport) = (node_bundle(&authority, 2), Arc::new(TokioTransport));
    let links = links_with(impatient_limits(), transport, &bundle, 2, START);
    node.introduce(&links);
    call(&links, 1, "echo").await.unwrap();
    let stuck = Bytes::from_static(b"stuck");
    let deadline = Duration::from_millis(150);
    let stuck = links.call(node_id(1), PeerClass::Control, stuck, deadline);
    assert_eq!(stuck.await, Err(BusError::Timeout));
    assert_eq!(health_of(&links, 1).dials, 1);
    assert!(health_of(&links, 1).connected);
}

#[tokio::test]
async fn acceptor_gives_up_on_a_silent_peer() {
    let authority = authority(CLUSTER, 1);
    let node = TestNode::start_with(impatient_limits(), &authority, 1).await;
    let bundle = node_bundle(&authority, 2);
    let stream = intrude(&intruder(&bundle, &bundle), &node).await.unwrap();
    let mut pipe = say_hello(stream, &hello(2, 1)).await;
    assert_eq!(pipe.read_frame().await.unwrap().kind, FrameKind::Welcome);
    assert!(is_closed(&mut pipe).await);
    wait_until(|| health_of(&node.links, 2).accepted == 0).await;
}

/// A network on which nothing ever connects.
struct Void;

impl Transport for Void {
    fn listen(&self, _: SocketAddr) -> BoxFuture<'_, std::io::Result<Box<dyn Listener>>> {
        pending().boxed()
    }

    fn connect<'a>(&'a self, _: &'a str) -> BoxFuture<'a, std::io::Result<BoxStream>> {
        pending().boxed()
    }

    fn bind_datagrams(&self, _: SocketAddr) -> BoxFuture<'_, std::io::Result<Box<dyn Datagrams>>> {
        pending().boxed()
    }

    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, std::io::Result<Vec<SocketAddr>>> {
        pending().boxed()
    }
}

#[tokio::test]
async fn withdrawn_call_is_never_sent_and_a_sent_one_cannot_be_withdrawn() {
    let handler = Arc::new(Scripted::default());
    let (_node, links) = pair(Arc::clone(&handler)).await;
    let call = |request: &'static [u8], permit: &SendPermit| {
        let (request, permit) = (Bytes::from_static(request), permit.clone());
        links.call_permitted(node_id(1), PeerClass::Forward, request, PATIENCE, permit)
    };
    // Nothing leaves before this task yields.
    let [withdrawn, sent] = [SendPermit::default(), SendPermit::default()];
    let [first, second] = [call(b"withdrawn", &withdrawn), call(b"sent", &sent)];
    assert!(withdrawn.withdraw());
    assert!(matches!(first.await, Err(BusError::Unreachable(_))));
    assert_eq!(second.await.unwrap(), "sent");
    assert!(!sent.withdraw());
    let seen = lock(&handler.seen)
        .iter()
        .map(|seen| seen.2.clone())
        .collect::<Vec<_>>();
    assert_eq!(seen, ["sent"]);
}

#[tokio::test]
async fn unsent_calls_are_bounded_and_surely_not_delivered() {
    let authority = authority(CLUSTER, 1);
    let links = links_over(Arc::new(Void), &node_bundle(&authority, 2), 2, START);
    links.set_peer_address(node_id(1), "nowhere:1".to_owned());
    let request = Bytes::from(vec![0; 16 * 1024 * 1024]);
    let call = |deadline| links.call(node_id(1), PeerClass::Append, request.clone(), deadline);
    let queued: Vec<_> = (0..4).map(|_| call(Duration::from_millis(20))).collect();
    let over = call(PATIENCE).now_or_never();
    assert!(
        matches!(over, Some(Err(BusError::Unreachable(_)))),
        "{over:?}"
    );
    for reply in queued {
        assert!(matches!(reply.await, Err(BusError::Unreachable(_))));
    }
}
