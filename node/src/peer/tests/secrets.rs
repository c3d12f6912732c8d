//! What both ends of a control connection have in common.

use kelp_wire::HeartbeatKeyId;

use super::*;
use crate::peer::secret::SECRET_AFTERLIFE;

/// Node 1 that dials node 2, with their clocks.
struct Pair {
    dialler: PeerLinks,
    acceptor: TestNode,
}

impl Pair {
    async fn new() -> Self {
        let authority = authority(CLUSTER, 1);
        let acceptor = TestNode::start(&authority, 2, Arc::new(Scripted::default())).await;
        let dialler = links(&node_bundle(&authority, 1), 1, START);
        acceptor.introduce(&dialler);
        Self { dialler, acceptor }
    }

    /// The secret of the open connection as the dialler has it.
    fn dialled(&self) -> Option<Arc<crate::peer::LinkSecret>> {
        self.dialler.book().dialled_secret(node_id(2))
    }

    fn accepts(&self, id: HeartbeatKeyId) -> bool {
        let book = self.acceptor.links.book();
        book.accepted_secret(node_id(1), id).is_some()
    }
}

#[tokio::test]
async fn a_wanted_connection_is_dialled_and_both_ends_share_its_secret() {
    let pair = Pair::new().await;
    assert!(pair.dialled().is_none());
    pair.dialler.want_control(node_id(2));
    wait_until(|| pair.dialler.book().holds_dialled_secret(node_id(2))).await;
    let secret = pair.dialled().unwrap();
    wait_until(|| pair.accepts(secret.id())).await;
    let book = pair.acceptor.links.book();
    let other = book.accepted_secret(node_id(1), secret.id()).unwrap();
    assert!(other.verify(b"alive", &secret.sign(b"alive")));
    let of_nobody = book.accepted_secret(node_id(3), secret.id());
    assert!(of_nobody.is_none());
}

#[tokio::test]
async fn other_connections_have_no_secret() {
    let pair = Pair::new().await;
    let (request, deadline) = (Bytes::from_static(b"echo"), PATIENCE);
    let reply = pair
        .dialler
        .call(node_id(2), PeerClass::Append, request, deadline);
    reply.await.unwrap();
    assert!(pair.dialled().is_none());
}

#[tokio::test]
async fn a_connection_that_is_dialled_again_has_another_secret() {
    let pair = Pair::new().await;
    pair.dialler.want_control(node_id(2));
    wait_until(|| pair.dialled().is_some()).await;
    let first = pair.dialled().unwrap();
    let breaking = Bytes::from_static(b"break");
    let broken = pair
        .dialler
        .call(node_id(2), PeerClass::Control, breaking, PATIENCE);
    assert!(broken.await.is_err());
    wait_until(|| !pair.dialler.book().holds_dialled_secret(node_id(2))).await;
    assert_eq!(pair.dialled().unwrap().id(), first.id(), "for a while yet");
    let is_new = || {
        pair.dialled()
            .is_some_and(|secret| secret.id() != first.id())
    };
    wait_until(|| {
        pair.dialler.want_control(node_id(2));
        is_new()
    })
    .await;
    let second = pair.dialled().unwrap();
    wait_until(|| pair.accepts(second.id())).await;
    assert!(
        pair.accepts(first.id()),
        "ten seconds of the acceptor's clock"
    );
    assert!(SECRET_AFTERLIFE >= Duration::from_secs(1));
}
