//! Bringing a replica up: whose data is it, what was committed, then Raft.
//!
//! ```text
//! bind identity -> open log and state -> re-apply what was committed -> openraft
//! ```

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bytes::{BufMut, Bytes, BytesMut};
use kelp_storage::{Database, Keyspace, LogNumber};
use openraft::async_runtime::WatchReceiver;
use tokio::sync::watch;

use super::{Inner, Raft};
use crate::applier::Unflushed;
use crate::clocks::PeerClocks;
use crate::codec::{CodecError, Reader};
use crate::error::StartError;
use crate::links::Links;
use crate::log_store::LogStore;
use crate::model::{ClusterId, NodeId};
use crate::network::Network;
use crate::options::{LeaderRestore, RaftOptions, RaftParts, raft_config};
use crate::read_index::ReadIndex;
use crate::recovery;
use crate::retention::Retention;
use crate::server::{LeaderContact, Server};
use crate::snapshot::{Receiver, ReceiverParts, Shipping};
use crate::state_machine::{OpenRaft, StateMachine};
use crate::type_config::raft_node;

/// Version of the record that says whose data this is.
const OWNER_VERSION: u8 = 1;

impl Raft {
    /// Starts the replica of `options.group` on this node.
    ///
    /// On data of an earlier run it first re-applies every entry that was known to be committed,
    /// in bounded pieces, so the returned replica never shows an older state than it did before.
    /// An empty replica waits until [`Raft::initialize`] or a leader gives it a membership.
    pub async fn start(options: RaftOptions, parts: RaftParts) -> Result<Self, StartError> {
        Self::start_with(options, parts, LeaderRestore::Never).await
    }

    pub(crate) async fn start_with(
        options: RaftOptions,
        parts: RaftParts,
        restore: LeaderRestore,
    ) -> Result<Self, StartError> {
        let config = raft_config(&options, restore)?;
        bind_owner(&parts.database, &options)?;
        let log = parts.database.log(LogNumber::new(options.group.get()))?;
        let store = LogStore::new(log.clone(), Arc::clone(&parts.seams.executor));
        let unflushed = Arc::new(Unflushed::new(options.retention.flush_bytes));
        let opened = recovery::open_state(&options, &parts, &log, &store, Arc::clone(&unflushed));
        let (applier, state, start) = opened.await?;
        let progress = applier.progress();
        let keyspace = state.keyspace().clone();
        let executor = Arc::clone(&parts.seams.executor);
        let clock = Arc::clone(&parts.seams.clock);
        let shipping = Arc::new(Shipping::new(executor, Arc::clone(&clock)));

        let clocks = Arc::new(PeerClocks::default());
        let links = Arc::new(Links {
            node: options.node,
            group: options.group,
            timing: options.timing,
            bus: Arc::clone(&parts.bus),
            clocks,
        });
        let machine = StateMachine::new(
            applier.clone(),
            start,
            keyspace.clone(),
            Arc::clone(&shipping),
        );
        let raft = open_raft(&options, config, &links, &shipping, store, machine).await?;

        let reads = Arc::new(ReadIndex::new(raft.clone(), Arc::clone(&links)));
        let contact = Arc::new(LeaderContact::default());
        let snapshots = receiver(&parts, &raft, &keyspace, &shipping);
        let server = Arc::new(Server {
            group: options.group,
            raft: raft.clone(),
            reads: Arc::clone(&reads),
            snapshots: Arc::new(snapshots),
            clock: Arc::clone(&clock),
            contact: Arc::clone(&contact),
        });
        let epoch = watch_status(&raft);
        let retention = Retention {
            raft: raft.clone(),
            log: log.clone(),
            keyspace,
            shipping: Arc::clone(&shipping),
            unflushed,
            limits: options.retention,
            progress: progress.clone(),
            epoch: epoch.clone(),
        };
        tokio::spawn(retention.run());
        let inner = Inner {
            raft,
            links,
            log,
            shipping,
            reads,
            server,
            contact,
            clock,
            state,
            applier,
            progress,
            epoch,
            stamp_given: AtomicU64::new(0),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }
}

/// The receiving end of snapshots.
fn receiver(
    parts: &RaftParts,
    raft: &OpenRaft,
    keyspace: &Keyspace,
    shipping: &Arc<Shipping>,
) -> Receiver {
    Receiver::new(ReceiverParts {
        raft: raft.clone(),
        database: parts.database.clone(),
        keyspace: keyspace.clone(),
        executor: Arc::clone(&parts.seams.executor),
        clock: Arc::clone(&parts.seams.clock),
        rng: Arc::clone(&parts.seams.rng),
        shipping: Arc::clone(shipping),
    })
}

/// Brings the log and the state together with openraft.
async fn open_raft(
    options: &RaftOptions,
    config: Arc<openraft::Config>,
    links: &Arc<Links>,
    shipping: &Arc<Shipping>,
    store: LogStore,
    machine: StateMachine,
) -> Result<OpenRaft, StartError> {
    let network = Network::new(Arc::clone(links), Arc::clone(shipping));
    OpenRaft::new(raft_node(options.node), config, network, store, machine)
        .await
        .map_err(|error| StartError::Raft(error.to_string()))
}

/// Writes down whose data this is, or refuses the data of somebody else.
fn bind_owner(database: &Database, options: &RaftOptions) -> Result<(), StartError> {
    if let Some(owner) = database.owner() {
        let (node, cluster) = decode_owner(owner)
            .map_err(|error| StartError::Corrupt(format!("owner record: {error}")))?;
        if (node, cluster) != (options.node, options.cluster) {
            return Err(StartError::ForeignData { node, cluster });
        }
        return Ok(());
    }
    database.bind(&encode_owner(options.node, options.cluster))?;
    Ok(())
}

fn encode_owner(node: NodeId, cluster: ClusterId) -> Bytes {
    let mut out = BytesMut::with_capacity(1 + 2 + 16);
    out.put_u8(OWNER_VERSION);
    out.put_u16(node.get());
    out.put_slice(&cluster.get());
    out.freeze()
}

fn decode_owner(owner: Bytes) -> Result<(NodeId, ClusterId), CodecError> {
    let mut reader = Reader::new(owner);
    let version = reader.u8("owner version")?;
    if version != OWNER_VERSION {
        return Err(CodecError::Undefined {
            field: "owner version",
            value: u64::from(version),
        });
    }
    let node = NodeId::new(reader.u16("owner node")?);
    let mut cluster = [0; 16];
    cluster.copy_from_slice(&reader.bytes(16, "owner cluster")?);
    reader.finish()?;
    Ok((node, ClusterId::new(cluster)))
}

/// Counts changes of role, leader, term and membership until the core ends.
fn watch_status(raft: &OpenRaft) -> watch::Receiver<u64> {
    let (sender, receiver) = watch::channel(0);
    let mut metrics = raft.server_metrics();
    tokio::spawn(async move {
        while metrics.changed().await.is_ok() {
            sender.send_modify(|epoch| *epoch += 1);
        }
        sender.send_modify(|epoch| *epoch += 1);
    });
    receiver
}
