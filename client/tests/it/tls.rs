//! TLS under a connection, over the in-memory network.

use std::sync::Arc;

use kelp_client::{ConnectError, Connection, ConnectionOptions, Tls};
use rcgen::generate_simple_self_signed;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

use crate::network::{Network, get, soon};

const NAME: &str = "n1.kelp.internal";

struct Fixture {
    acceptor: TlsAcceptor,
    options: ConnectionOptions,
}

fn fixture(expected_name: Option<&'static str>) -> Fixture {
    let certified = generate_simple_self_signed([NAME.to_owned()]).expect("a plain certificate");
    let certificate: CertificateDer<'static> = certified.cert.der().clone();
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).expect("a fresh key");
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).expect("a fresh certificate");
    let server = ServerConfig::builder()
        .with_no_client_auth()
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
