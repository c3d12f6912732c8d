//! TLS under a connection, over the in-memory network.

use std::sync::Arc;
use std::time::Duration;

use kelp_client::{ClientError, ConnectError, Connection, ConnectionOptions, Status, Tls};
use rcgen::generate_simple_self_signed;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

use crate::network::{Network, Node, builder, get, soon};

const NAME: &str = "n1.kelp.internal";

struct Fixture {
    acceptor: TlsAcceptor,
    options: ConnectionOptions,
}

fn fixture(expected_name: Option<&'static str>) -> Fixture {
    fixture_with(expected_name, false)
}

/// A node that wants a certificate of its clients, and a client that has none.
fn strict_fixture() -> Fixture {
    fixture_with(Some(NAME), true)
}

fn fixture_with(expected_name: Option<&'static str>, wants_certificate: bool) -> Fixture {
    let certified = generate_simple_self_signed([NAME.to_owned()]).expect("a plain certificate");
    let certificate: CertificateDer<'static> = certified.cert.der().clone();
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).expect("a fresh key");
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).expect("a fresh certificate");
    let server = ServerConfig::builder();
    let server = if wants_certificate {
        let verifier = WebPkiClientVerifier::builder(Arc::new(roots.clone()));
        server.with_client_cert_verifier(verifier.build().expect("one root"))
    } else {
        server.with_no_client_auth()
    };
    let server = server
        .with_single_cert(vec![certificate], key)
        .expect("key and certificate fit");
    let client = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let server_name = expected_name.map(|name| ServerName::try_from(name).expect("a name"));
    Fixture {
        acceptor: TlsAcceptor::from(Arc::new(server)),
        options: ConnectionOptions {
            tls: Some(Tls {
                config: Arc::new(client),
                server_name,
            }),
            ..ConnectionOptions::default()
        },
    }
}

#[tokio::test(start_paused = true)]
async fn requests_travel_over_tls() {
    let network = Network::new();
    let mut node = network.node("a:1");
    let fixture = fixture(Some(NAME));
    let opening = Connection::open(network.as_ref(), "a:1", &fixture.options, soon());
    let accepting = node.accept_tls(&fixture.acceptor);
    let (connection, peer) = tokio::join!(opening, accepting);
    let connection = connection.unwrap();
    tokio::spawn(peer.unwrap().answer_with_keys());
    for key in [b"a", b"b"] {
        let reply = connection.call(&get(key), soon()).await.unwrap();
        assert_eq!(reply.value, &key[..]);
    }
}

#[tokio::test(start_paused = true)]
async fn node_of_another_name_is_refused() {
    for expected in [Some("n2.kelp.internal"), None] {
        let network = Network::new();
        let mut node = network.node("a:1");
        let fixture = fixture(expected);
        let opening = Connection::open(network.as_ref(), "a:1", &fixture.options, soon());
        let accepting = node.accept_tls(&fixture.acceptor);
        let (connection, _peer) = tokio::join!(opening, accepting);
        let error = connection.unwrap_err();
        assert!(matches!(error, ConnectError::Tls { .. }), "{error}");
    }
}

/// Refuses whoever dials, as long as somebody does.
async fn refuse_all(mut node: Node, acceptor: TlsAcceptor) {
    loop {
        assert!(node.accept_tls(&acceptor).await.is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn certificates_that_do_not_fit_end_a_call_after_one_round() {
    let other_name = fixture(Some("n2.kelp.internal"));
    for fixture in [other_name, strict_fixture()] {
        let network = Network::new();
        for name in ["a:1", "b:1"] {
            tokio::spawn(refuse_all(network.node(name), fixture.acceptor.clone()));
        }
        let client = builder(&network, &["a:1", "b:1"])
            .connection_options(fixture.options)
            .build()
            .unwrap();
        let start = Instant::now();
        let error = client.put("k", "v").await.unwrap_err();
        let ClientError::Refused { status, message } = &error else {
            panic!("{error}")
        };
        assert_eq!(*status, Status::Refused);
        assert!(message.contains("TLS"), "{message}");
        assert!(start.elapsed() < Duration::from_millis(100));
    }
}

#[tokio::test(start_paused = true)]
async fn one_node_with_another_certificate_does_not_end_a_call() {
    let network = Network::new();
    let other = fixture(Some("n2.kelp.internal"));
    tokio::spawn(refuse_all(network.node("a:1"), other.acceptor.clone()));
    let mut b = network.node("b:1");
    let fixture = fixture(Some(NAME));
    let client = builder(&network, &["a:1", "b:1"])
        .connection_options(fixture.options)
        .build()
        .unwrap();
    let serve = async {
        b.accept_tls(&fixture.acceptor)
            .await
            .unwrap()
            .answer_with_keys()
            .await;
    };
    tokio::select! {
        record = client.get("k") => assert_eq!(record.unwrap().unwrap().value, "k"),
        () = serve => unreachable!("it serves for ever"),
    }
}
