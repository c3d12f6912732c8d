use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use kelp_client::{TokioTransport, Transport};
use kelp_raft::{NodeId, RaftStatus, Role, SnapshotStatus, Term};
use kelp_seams::Monotonic;
use kelp_storage::StorageMetrics;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinHandle;

use super::*;
use crate::observe::{OutboxMetrics, Sources};
use crate::peer::{PeerHealth, RefusalReason};

#[derive(Default)]
struct Idle {
    outbox: OutboxMetrics,
}

impl Sources for Idle {
    fn raft(&self) -> RaftStatus {
        RaftStatus {
            node: NodeId::new(1),
            role: Role::Follower,
            term: Term::new(1),
            leader: None,
            leader_contact: None,
            last_log: None,
            committed: None,
            applied: None,
            members: BTreeMap::new(),
            replication: BTreeMap::new(),
            snapshots: SnapshotStatus::default(),
        }
    }

    fn storage(&self) -> StorageMetrics {
        StorageMetrics::default()
    }

    fn peers(&self) -> Vec<PeerHealth> {
        Vec::new()
    }

    fn peer_refusals(&self, _: RefusalReason) -> u64 {
        0
    }

    fn outbox(&self) -> &OutboxMetrics {
        &self.outbox
    }

    fn now(&self) -> Monotonic {
        Monotonic::default()
    }
}

#[derive(Default)]
struct Switch {
    leader: AtomicBool,
}

impl ReadinessSource for Switch {
    fn checks(&self) -> Vec<ReadinessCheck> {
        let leader = ReadinessCheck {
            name: "leader",
            ready: self.leader.load(Ordering::Relaxed),
            detail: "is it known".to_owned(),
        };
        let draining = ReadinessCheck {
            name: "draining",
            ready: true,
            detail: String::new(),
        };
        vec![leader, draining]
    }
}

struct Port {
    address: String,
    readiness: Arc<Switch>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

async fn port() -> Port {
    let listener = TokioTransport
        .listen("127.0.0.1:0".parse().unwrap())
        .await
        .unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let readiness = Arc::new(Switch::default());
    let (stop, stopped) = watch::channel(false);
    let observer = Observer::over(Arc::new(Idle::default()));
    let source: Arc<dyn ReadinessSource> = Arc::clone(&readiness) as Arc<dyn ReadinessSource>;
    let task = tokio::spawn(run(
        listener,
        PortTls::plaintext(),
        observer,
        source,
        stopped,
    ));
    Port {
        address,
        readiness,
        stop,
        task,
    }
}

impl Port {
    async fn send(&self, request: &str) -> String {
        let mut stream = TokioTransport.connect(&self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    async fn get(&self, path: &str) -> String {
        let head = format!("GET {path} HTTP/1.1\r\nHost: kelp\r\nConnection: close\r\n\r\n");
        self.send(&head).await
    }
}

#[tokio::test]
async fn metrics_are_served_as_prometheus_text() {
    let answer = port().await.get("/metrics").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("content-type: text/plain; version=0.0.4; charset=utf-8\r\n"));
    assert!(answer.contains("\nkelp_raft_term{group=\"0\"} 1\n"));
}

#[tokio::test]
async fn node_is_alive_while_it_is_not_ready() {
    let port = port().await;
    assert!(port.get("/livez").await.starts_with("HTTP/1.1 200 OK\r\n"));
    let answer = port.get("/readyz").await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(
        answer.ends_with("[-]leader is it known\nnot ready\n"),
        "{answer}"
    );
}

#[tokio::test]
async fn ready_node_says_why_when_asked() {
    let port = port().await;
    port.readiness.leader.store(true, Ordering::Relaxed);
    let brief = port.get("/readyz").await;
    assert!(brief.starts_with("HTTP/1.1 200 OK\r\n") && brief.ends_with("\r\n\r\nok\n"));
    let verbose = port.get("/readyz?verbose").await;
    assert!(
        verbose.ends_with("[+]leader is it known\n[+]draining \nok\n"),
        "{verbose}"
    );
}

#[tokio::test]
async fn other_paths_methods_and_long_heads_are_refused() {
    let port = port().await;
    assert!(port.get("/").await.starts_with("HTTP/1.1 404 "));
    let request = "POST /metrics HTTP/1.1\r\nHost: kelp\r\nConnection: close\r\n\r\n";
    assert!(port.send(request).await.starts_with("HTTP/1.1 405 "));
    let long = format!("GET /{} HTTP/1.1\r\nHost: kelp\r\n\r\n", "a".repeat(9000));
    let answer = port.send(&long).await;
    assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
}

#[tokio::test]
async fn stop_closes_the_port_and_open_connections() {
    let port = port().await;
    let mut open = TokioTransport.connect(&port.address).await.unwrap();
    open.write_all(b"GET /livez HTTP/1.1\r\nHost: kelp\r\n\r\n")
        .await
        .unwrap();
    let mut byte = [0];
    open.read_exact(&mut byte).await.unwrap();
    port.stop.send_replace(true);
    port.task.await.unwrap();
    let mut rest = Vec::new();
    // Closed in one way or the other.
    open.read_to_end(&mut rest).await.ok();
    assert!(TokioTransport.connect(&port.address).await.is_err());
}
