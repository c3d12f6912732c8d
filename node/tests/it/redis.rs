//! The Redis port of whole nodes, driven by a client that knows nothing but the protocol.

mod commands;
mod connect;
mod door;
mod order;
mod scan;
mod whole;
mod wire;

use std::future::Future;

use tokio::runtime::Runtime;

use crate::cluster::TestCluster;
use wire::Wire;

/// A cluster of one, and a connection to its Redis port.
fn alone<F: Future<Output = ()>>(test: impl FnOnce(Wire) -> F) {
    let cluster = TestCluster::start(1);
    let runtime = Runtime::new().expect("a runtime can be made");
    runtime.block_on(async { test(Wire::open(&cluster.nodes[0].resp).await).await });
}
