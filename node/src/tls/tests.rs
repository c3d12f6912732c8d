use kelp_client::BoxStream;
use kelp_raft::{ClusterId, NodeId};
use kelp_seams::{ManualClock, SeededRng};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

use super::*;
use crate::certs::{Authority, Identity, LEAF_LIFETIME, NodeRequest};

const CLUSTER: ClusterId = ClusterId::new([3; 16]);

fn clock() -> Arc<ManualClock> {
    let clock = ManualClock::new();
    clock.set_wall(WallMillis::new(1_767_225_600_000));
    Arc::new(clock)
}

fn authority(seed: u64) -> Authority {
    Authority::generate(CLUSTER, &*clock(), &SeededRng::new(seed)).unwrap()
}

fn node_bundle(authority: &Authority) -> Bundle {
    let request = NodeRequest::local(NodeId::new(1));
    authority
        .issue_node(&request, &*clock(), &SeededRng::new(1))
        .unwrap()
}

fn material(bundle: &Bundle) -> TlsMaterial {
    TlsMaterial::from_bundle(bundle, default_provider(), clock()).unwrap()
}

fn pipe() -> (BoxStream, BoxStream) {
    let (near, far) = duplex(64 * 1024);
    (Box::new(near), Box::new(far))
}

fn port(auth: ClientAuth, plaintext: bool) -> (Authority, PortTls) {
    let authority = authority(1);
    let material = material(&node_bundle(&authority));
    let port = PortTls::new(&material, auth, &[b"kelp/1"], plaintext).unwrap();
    (authority, port)
}

/// Dials a port by the name `localhost`, with the certificate of `shown` if there is one.
async fn dial(
    stream: BoxStream,
    trusted: &Authority,
    shown: Option<&Bundle>,
) -> std::io::Result<tokio_rustls::client::TlsStream<BoxStream>> {
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_slice(trusted.certificate_pem().as_bytes()).unwrap();
    roots.add(root).unwrap();
    let config =
        rustls::ClientConfig::builder_with_details(default_provider(), Arc::new(SeamTime(clock())))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
    let mut config = match shown {
        None => config.with_no_client_auth(),
        Some(bundle) => {
            let leaf = CertificateDer::from_pem_slice(bundle.certificate_pem.as_bytes());
            let key = PrivateKeyDer::from_pem_slice(bundle.key_pem.as_bytes()).unwrap();
            config
                .with_client_auth_cert(vec![leaf.unwrap()], key)
                .unwrap()
        }
    };
    config.alpn_protocols = vec![b"kelp/1".to_vec()];
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    connector
        .connect(ServerName::try_from("localhost").unwrap(), stream)
        .await
}

#[tokio::test]
async fn sniffed_stream_gives_its_first_byte_back() {
    let (mut near, far) = pipe();
    near.write_all(b"hello").await.unwrap();
    let (first, mut sniffed) = sniff(far).await.unwrap();
    assert_eq!(first, FirstByte::Plaintext);
    let mut text = [0; 5];
    sniffed.read_exact(&mut text).await.unwrap();
    assert_eq!(&text, b"hello");
    sniffed.write_all(b"bye").await.unwrap();
    near.read_exact(&mut text[..3]).await.unwrap();
    assert_eq!(&text[..3], b"bye");
}

#[tokio::test]
async fn sniffing_an_ended_stream_is_an_error() {
    let (near, far) = pipe();
    drop(near);
    assert!(sniff(far).await.is_err());
}

#[tokio::test]
async fn port_serves_tls_and_plaintext_by_the_first_byte() {
    let (authority, port) = port(ClientAuth::Optional, true);
    let (mut near, far) = pipe();
    near.write_all(&[0xa1]).await.unwrap();
    let plain = port.accept(far).await.unwrap();
    assert!(!plain.is_tls() && plain.identity().is_none());

    let (near, far) = pipe();
    let (dialled, accepted) = tokio::join!(dial(near, &authority, None), port.accept(far));
    let (mut dialled, mut accepted) = (dialled.unwrap(), accepted.unwrap());
    assert!(accepted.is_tls() && accepted.identity().is_none());
    assert_eq!(dialled.get_ref().1.alpn_protocol(), Some(&b"kelp/1"[..]));
    dialled.write_all(b"ping").await.unwrap();
    let mut text = [0; 4];
    accepted.read_exact(&mut text).await.unwrap();
    assert_eq!(&text, b"ping");
}

#[tokio::test]
async fn port_tells_who_the_client_is() {
    let (authority, port) = port(ClientAuth::Required, false);
    let client = authority.issue_client("app", LEAF_LIFETIME, &*clock(), &SeededRng::new(4));
    let client = client.unwrap();
    let (near, far) = pipe();
    let (dialled, accepted) = tokio::join!(dial(near, &authority, Some(&client)), port.accept(far));
    dialled.unwrap();
    let expected = Identity::Client(CLUSTER, "app".to_owned());
    assert_eq!(accepted.unwrap().identity(), Some(expected));
}

#[tokio::test]
async fn a_node_opens_its_own_port_and_no_other() {
    let (authority, port) = port(ClientAuth::Required, false);
    let material = material(&node_bundle(&authority));
    let own = OwnTls::new(&material, CLUSTER, NodeId::new(1), b"kelp/1").unwrap();
    let (near, far) = pipe();
    let (dialled, accepted) = tokio::join!(own.connect(near), port.accept(far));
    assert!(dialled.is_ok() && accepted.is_ok());
    let other = OwnTls::new(&material, CLUSTER, NodeId::new(2), b"kelp/1").unwrap();
    let (near, far) = pipe();
    let (dialled, _) = tokio::join!(other.connect(near), port.accept(far));
    assert!(dialled.is_err());
}

#[tokio::test]
async fn port_that_demands_tls_refuses_plaintext_and_strangers() {
    let (authority, port) = port(ClientAuth::Required, false);
    let (mut near, far) = pipe();
    near.write_all(&[0xa1]).await.unwrap();
    assert!(port.accept(far).await.is_err());

    let (near, far) = pipe();
    let (_, accepted) = tokio::join!(dial(near, &authority, None), port.accept(far));
    assert!(accepted.is_err());

    let stranger = self::authority(2);
    let shown = stranger.issue_client("app", LEAF_LIFETIME, &*clock(), &SeededRng::new(4));
    let (near, far) = pipe();
    let shown = shown.unwrap();
    let (_, accepted) = tokio::join!(dial(near, &authority, Some(&shown)), port.accept(far));
    assert!(accepted.is_err());
}

#[tokio::test]
async fn port_without_tls_refuses_tls() {
    let (mut near, far) = pipe();
    near.write_all(&[0x16]).await.unwrap();
    assert!(PortTls::plaintext().accept(far).await.is_err());
}

#[test]
fn peer_tls_demands_the_certificate_of_its_own_node() {
    let material = material(&node_bundle(&authority(1)));
    assert!(PeerTls::new(&material, CLUSTER, NodeId::new(1)).is_ok());
    let other_node = PeerTls::new(&material, CLUSTER, NodeId::new(2));
    assert!(matches!(other_node, Err(TlsError::WrongIdentity { .. })));
    let other_cluster = PeerTls::new(&material, ClusterId::new([4; 16]), NodeId::new(1));
    assert!(matches!(other_cluster, Err(TlsError::WrongIdentity { .. })));
}

#[test]
fn broken_bundles_are_refused() {
    let good = node_bundle(&authority(1));
    let load = |bundle: &Bundle| TlsMaterial::from_bundle(bundle, default_provider(), clock());
    assert!(load(&good).is_ok());
    let mut no_key = good.clone();
    no_key.key_pem = "nothing".to_owned();
    assert!(load(&no_key).is_err());
    let mut no_certificate = good.clone();
    no_certificate.certificate_pem.clear();
    assert!(load(&no_certificate).is_err());
    let mut other_key = good;
    let request = NodeRequest::local(NodeId::new(1));
    let other = authority(1).issue_node(&request, &*clock(), &SeededRng::new(1));
    other_key.key_pem = other.unwrap().key_pem;
    let material = load(&other_key).unwrap();
    assert!(PeerTls::new(&material, CLUSTER, NodeId::new(1)).is_err());
}
