//! A closed load of puts on an etcd cluster: each slot sends its next put when its last one is
//! answered.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use h2::client::SendRequest;
use hdrhistogram::Histogram;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::task::{JoinSet, LocalSet};

use crate::{processes, put};

/// What to load, and how.
#[derive(Clone)]
pub(crate) struct Load {
    pub(crate) endpoints: Vec<String>,
    pub(crate) connections: usize,
    pub(crate) outstanding: usize,
    pub(crate) value_bytes: usize,
    pub(crate) keys: u64,
    pub(crate) duration: Duration,
}

/// What came of it.
pub(crate) struct Outcome {
    pub(crate) operations: u64,
    pub(crate) elapsed: Duration,
    /// Microseconds.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
    /// CPU time of the load generator itself.
    pub(crate) cpu: Duration,
}

impl Outcome {
    #[expect(
        clippy::cast_precision_loss,
        reason = "a rate for people needs no more than 53 bits"
    )]
    pub(crate) fn operations_per_second(&self) -> f64 {
        self.operations as f64 / self.elapsed.as_secs_f64()
    }

    pub(crate) fn to_json(&self) -> serde_json::Value {
        json!({
            "operations": self.operations,
            "seconds": self.elapsed.as_secs_f64(),
            "operations_per_second": self.operations_per_second(),
            "latency_us": { "p50": self.p50, "p99": self.p99, "max": self.max },
            "load_cpu_seconds": self.cpu.as_secs_f64(),
        })
    }
}

/// What all slots share.
struct Shared {
    deadline: Instant,
    keys: u64,
    /// Values are windows into it.
    block: Vec<u8>,
    value_bytes: usize,
    random: Cell<u64>,
    latencies: RefCell<Histogram<u64>>,
}

impl Shared {
    fn random(&self) -> u64 {
        self.random.set(next_random(self.random.get()));
        self.random.get()
    }

    /// A value that does not compress and differs from most others.
    fn value(&self) -> &[u8] {
        let slack = u64::try_from(VALUE_SLACK_BYTES).expect("64 KiB fits");
        let start = usize::try_from(self.random() % slack).expect("below 64 KiB");
        &self.block[start..start + self.value_bytes]
    }
}

/// The block of random bytes is longer than a value by this.
const VALUE_SLACK_BYTES: usize = 64 << 10;
/// Any number but 0 will do.
const SEED: u64 = 0x9E37_79B9_7F4A_7C15;

/// The number after `state` (xorshift: the load needs spread, not secrecy).
fn next_random(mut state: u64) -> u64 {
    state ^= state << 13;
    state ^= state >> 7;
    state ^ state << 17
}

fn random_bytes(count: usize) -> Vec<u8> {
    let numbers = std::iter::successors(Some(SEED), |&state| Some(next_random(state)));
    numbers.flat_map(u64::to_le_bytes).take(count).collect()
}

/// Runs the load on this thread; the first put that fails ends it with an error.
pub(crate) fn run(load: &Load) -> Result<Outcome> {
    ensure!(
        load.connections > 0 && load.keys > 0,
        "a load needs connections and keys"
    );
    ensure!(
        load.outstanding.is_multiple_of(load.connections),
        "outstanding must be a multiple of connections"
    );
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let cpu_before = processes::cpu_time(std::process::id())?;
    let start = Instant::now();
    let shared = Rc::new(Shared {
        deadline: start + load.duration,
        keys: load.keys,
        block: random_bytes(load.value_bytes + VALUE_SLACK_BYTES),
        value_bytes: load.value_bytes,
        random: Cell::new(SEED),
        latencies: RefCell::new(Histogram::new(3)?),
    });
    LocalSet::new().block_on(&runtime, drive(load.clone(), Rc::clone(&shared)))?;
    let elapsed = start.elapsed();
    let latencies = shared.latencies.borrow();
    Ok(Outcome {
        operations: latencies.len(),
        elapsed,
        p50: microseconds(latencies.value_at_quantile(0.5)),
        p99: microseconds(latencies.value_at_quantile(0.99)),
        max: microseconds(latencies.max()),
        cpu: processes::cpu_time(std::process::id())?.saturating_sub(cpu_before),
    })
}

fn microseconds(nanoseconds: u64) -> f64 {
    Duration::from_nanos(nanoseconds).as_secs_f64() * 1e6
}

async fn drive(load: Load, shared: Rc<Shared>) -> Result<()> {
    let mut slots = JoinSet::new();
    for (number, endpoint) in (0..load.connections).zip(load.endpoints.iter().cycle()) {
        let connection = connect(endpoint)
            .await
            .with_context(|| format!("connection {number} to {endpoint}"))?;
        for _ in 0..load.outstanding / load.connections {
            slots.spawn_local(slot(
                connection.clone(),
                endpoint.clone(),
                Rc::clone(&shared),
            ));
        }
    }
    while let Some(slot) = slots.join_next().await {
        slot??;
    }
    Ok(())
}

async fn connect(endpoint: &str) -> Result<SendRequest<Bytes>> {
    let stream = TcpStream::connect(endpoint).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = h2::client::handshake(stream).await?;
    // The connection ends when the last sender is gone; its slots see the error that ended it
    // before.
    tokio::task::spawn_local(connection);
    Ok(sender)
}

async fn slot(connection: SendRequest<Bytes>, endpoint: String, shared: Rc<Shared>) -> Result<()> {
    loop {
        let start = Instant::now();
        if start >= shared.deadline {
            return Ok(());
        }
        let key = format!("bench:{:012}", shared.random() % shared.keys);
        let message = put::encode(key.as_bytes(), shared.value());
        put::send(connection.clone(), &endpoint, message).await?;
        let nanoseconds = u64::try_from(start.elapsed().as_nanos())?;
        shared.latencies.borrow_mut().record(nanoseconds)?;
    }
}
