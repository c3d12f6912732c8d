//! What the calls of a client return.

use std::time::Duration;

use kelp_client::{Client, ClientError, Consistency, Executed, RequestOptions};
use kelp_wire::{Opcode, Response, ResponseFields, Revision, SessionToken, Status};

use crate::network::{Asked, Network, Peer, builder, client};

const TOKEN: SessionToken = SessionToken {
    term: 3,
    index: 9,
    epoch: 1,
};

/// Runs one call against a node that answers it as `script` says.
async fn call<T>(
    call: impl AsyncFnOnce(Client) -> T,
    script: impl AsyncFnOnce(&mut Peer, Asked),
) -> T {
    let network = Network::new();
    let mut node = network.node("a:1");
    let client = client(&network, &["a:1"]);
    let node = async {
        let mut peer = node.accept().await;
        let asked = peer.next().await;
        script(&mut peer, asked).await;
        peer
    };
    let (result, _peer) = tokio::join!(call(client), node);
    result
}

async fn respond(peer: &mut Peer, asked: &Asked, status: Status, value: &[u8]) {
    let response = Response {
        fields: ResponseFields {
            revision: Some(Revision::new(70_000)),
            token: Some(TOKEN),
            ..ResponseFields::default()
        },
        value,
        ..Response::new(asked.id, asked.opcode, status)
    };
    peer.send(&response).await;
}

#[tokio::test(start_paused = true)]
async fn put_returns_its_revision() {
    let written = call(
        async |client| client.put("colour", "green").await,
        async |peer, asked| {
            assert_eq!(asked.opcode, Opcode::Put);
            assert_eq!(asked.key, b"colour");
            assert_eq!(
                asked.deadline,
                Some(Duration::from_millis(4_900)),
                "the node gives up first"
            );
            respond(peer, &asked, Status::Ok, b"").await;
        },
    )
    .await
    .unwrap();
    assert_eq!(written.revision, Revision::new(70_000));
    assert_eq!(written.token, Some(TOKEN));
}

#[tokio::test(start_paused = true)]
async fn get_returns_value_and_revision() {
    let record = call(
        async |client| client.get("colour").await,
        async |peer, asked| respond(peer, &asked, Status::Ok, b"green").await,
    )
    .await
    .unwrap()
    .unwrap();
    assert_eq!(record.value, "green");
    assert_eq!(record.revision, Revision::new(70_000));
}

#[tokio::test(start_paused = true)]
async fn get_of_an_absent_key_is_none() {
    let record = call(
        async |client| client.get("colour").await,
        async |peer, asked| respond(peer, &asked, Status::NotFound, b"").await,
    )
    .await;
    assert_eq!(record, Ok(None));
}

#[tokio::test(start_paused = true)]
async fn delete_says_whether_the_key_existed() {
    for (status, existed) in [(Status::Ok, true), (Status::NotFound, false)] {
        let deleted = call(
            async |client| client.delete("colour").await,
            async |peer, asked| respond(peer, &asked, status, b"").await,
        )
        .await
        .unwrap();
        assert_eq!(deleted.existed, existed);
    }
}

#[tokio::test(start_paused = true)]
async fn echo_and_status_return_the_value() {
    let echoed = call(
        async |client| client.echo("hi").await,
        async |peer, asked| respond(peer, &asked, Status::Ok, b"hi").await,
    )
    .await;
    assert_eq!(echoed.unwrap(), "hi");
    let status = call(
        async |client| client.status().await,
        async |peer, asked| respond(peer, &asked, Status::Ok, b"{}").await,
    )
    .await;
    assert_eq!(status.unwrap(), "{}");
}

#[tokio::test(start_paused = true)]
async fn options_travel_with_the_request() {
    let options = RequestOptions {
        database: 4,
        timeout: Some(Duration::from_millis(700)),
        consistency: Consistency::Stale {
            max_age: Duration::from_millis(30),
        },
        token: Some(TOKEN),
    };
    call(
        async |client| client.get_with("k", &options).await,
        async |peer, asked| {
            assert_eq!(
                asked.deadline,
                Some(Duration::from_millis(630)),
                "the node gives up first"
            );
            for part in ["database: 4", "max_age: 30ms", "term: 3"] {
                assert!(asked.text.contains(part), "{part} in {}", asked.text);
            }
            respond(peer, &asked, Status::NotFound, b"").await;
        },
    )
    .await
    .unwrap();
}

#[tokio::test(start_paused = true)]
async fn lasting_refusals_are_not_tried_again() {
    for status in Status::ALL
        .into_iter()
        .filter(|status| status.to_byte() >= 48)
    {
        let error = call(
            async |client| client.put("k", "v").await,
            async |peer, asked| peer.refuse(&asked, status).await,
        )
        .await
        .unwrap_err();
        let message = "as scripted".to_owned();
        assert_eq!(error, ClientError::Refused { status, message });
        assert_eq!(error.executed(), Executed::No);
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_outcome_of_a_write_is_reported() {
    let error = call(
        async |client| client.put("k", "v").await,
        async |peer, asked| peer.refuse(&asked, Status::OutcomeUnknown).await,
    )
    .await
    .unwrap_err();
    assert_eq!(error.executed(), Executed::Unknown);
}

#[tokio::test(start_paused = true)]
async fn reply_that_does_not_fit_says_what_was_executed() {
    let error = call(
        async |client| client.put("k", "v").await,
        async |peer, asked| {
            peer.send(&Response::new(asked.id, asked.opcode, Status::Ok))
                .await;
        },
    )
    .await
    .unwrap_err();
    assert_eq!(error.executed(), Executed::Yes);
}

#[tokio::test(start_paused = true)]
async fn request_over_a_limit_is_not_sent() {
    let network = Network::new();
    let mut node = network.node("a:1");
    let client = client(&network, &["a:1"]);
    let (error, _peer) = tokio::join!(client.put("", "v"), node.accept());
    assert!(matches!(error, Err(ClientError::Invalid(_))), "{error:?}");
}

#[test]
fn builder_names_what_is_wrong() {
    let check = |endpoints: &[&str], connections, expected: &str| {
        let built = Client::builder()
            .endpoints(endpoints.iter().copied())
            .connections(connections)
            .build();
        assert_eq!(built.unwrap_err().to_string(), expected);
    };
    check(&[], 1, "no endpoints");
    check(&["a"], 1, "endpoint \"a\" is not host:port");
    check(&["a:1", ":2"], 1, "endpoint \":2\" is not host:port");
    check(&["a:0"], 1, "endpoint \"a:0\" is not host:port");
    check(&["a:1"], 0, "connections must be 1 to 1024");
}

#[tokio::test(start_paused = true)]
async fn connections_are_spread_over_the_nodes() {
    let network = Network::new();
    let (mut a, mut b) = (network.node("a:1"), network.node("b:1"));
    let client = builder(&network, &["a:1", "b:1"])
        .connections(2)
        .build()
        .unwrap();
    let nodes = async {
        let peers = (a.accept().await, b.accept().await);
        tokio::spawn(peers.0.answer_with_keys());
        tokio::spawn(peers.1.answer_with_keys());
    };
    let calls = async { tokio::join!(client.get("x"), client.get("y")) };
    let ((x, y), ()) = tokio::join!(calls, nodes);
    assert_eq!(x.unwrap().unwrap().value, "x");
    assert_eq!(y.unwrap().unwrap().value, "y");
}
