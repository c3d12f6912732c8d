//! A write that never left its node is not executed, and its client hears just that.

use std::time::Duration;

use kelp_wire::{Request, Status, WriteOptions};

use crate::cluster::TestCluster;
use crate::raw::{RawConnection, hello, request};

#[test]
fn a_write_that_waits_for_a_link_until_its_deadline_is_surely_not_executed() {
    let cluster = TestCluster::start(3);
    let leader = cluster.wait_for_leader();
    let follower = &cluster.nodes[(leader + 1) % 3];
    let leader_address = &cluster.nodes[leader].member.peer;
    follower.transport.hold_dials(leader_address);
    follower.transport.break_connections(leader_address);

    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
    let reply = runtime.block_on(async {
        let mut connection = RawConnection::open(&follower.member.client).await;
        connection.send(&hello()).await;
        connection.next().await.expect("the hello is answered");
        let put = Request::Put {
            database: 0,
            key: b"k",
            value: b"v",
            options: WriteOptions {
                deadline: Some(Duration::from_millis(300)),
                session: None,
            },
        };
        connection.send(&request(2, &put)).await;
        connection.next().await.expect("the write is answered")
    });
    assert_eq!(reply.status, Status::Unavailable, "{}", reply.text());
}
