//! Describing a client, with every limit and its default.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use kelp_seams::{OsRng, Rng, SeededRng};
use kelp_wire::ClusterId;

use super::lane::Lane;
use super::{Client, Inner};
use crate::connection::{ConnectionOptions, Login, Tls};
use crate::error::ClientError;
use crate::transport::{TokioTransport, Transport};

/// More connections than this from one client only compete with each other.
const CONNECTIONS_MAX: usize = 1_024;

/// What every call of a client needs to know.
pub(super) struct Settings {
    pub(super) endpoints: Vec<String>,
    pub(super) timeout: Duration,
    pub(super) attempt_timeout: Duration,
    pub(super) connect_timeout: Duration,
    pub(super) connection: ConnectionOptions,
    pub(super) transport: Arc<dyn Transport>,
    pub(super) rng: Arc<dyn Rng>,
}

/// Describes a [`Client`].
#[must_use = "a builder does nothing until it builds"]
pub struct ClientBuilder {
    endpoints: Vec<String>,
    connections: usize,
    timeout: Duration,
    attempt_timeout: Duration,
    connect_timeout: Duration,
    connection: ConnectionOptions,
    transport: Arc<dyn Transport>,
    rng: Option<Arc<dyn Rng>>,
}

impl Default for ClientBuilder {
    fn default() -> Self {
        Self {
            endpoints: Vec::new(),
            connections: 1,
            timeout: Duration::from_secs(5),
            attempt_timeout: Duration::from_secs(2),
            connect_timeout: Duration::from_secs(1),
            connection: ConnectionOptions::default(),
            transport: Arc::new(TokioTransport),
            rng: None,
        }
    }
}

impl ClientBuilder {
    /// The nodes to use, as "host:port"; at least one. Any node of the cluster serves any request.
    pub fn endpoints<T: Into<String>>(mut self, endpoints: impl IntoIterator<Item = T>) -> Self {
        self.endpoints = endpoints.into_iter().map(Into::into).collect();
        self
    }

    /// Speaks TLS; plaintext by default.
    pub fn tls(mut self, tls: Tls) -> Self {
        self.connection.tls = Some(tls);
        self
    }

    /// Logs in with a name and password; no login by default.
    pub fn login(mut self, login: Login) -> Self {
        self.connection.login = Some(login);
        self
    }

    /// Refuses nodes of any other cluster; any cluster by default.
    pub fn cluster(mut self, cluster: ClusterId) -> Self {
        self.connection.cluster = Some(cluster);
        self
    }

    /// How long a call may take, all attempts together; 5 s by default.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How long one attempt at a read may take before another node is tried; 2 s by default.
    /// Writes are not cut short: once sent, they cannot be repeated.
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.attempt_timeout = timeout;
        self
    }

    /// How long opening a connection may take before another node is tried; 1 s by default.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Over how many connections calls are spread; 1 by default, at most 1,024. Each picks its
    /// node by itself, so that several connections use several nodes.
    pub fn connections(mut self, count: usize) -> Self {
        self.connections = count;
        self
    }

    /// Bounds of each connection; TLS, login and cluster in it are replaced by those set above
    /// only when set after this.
    pub fn connection_options(mut self, options: ConnectionOptions) -> Self {
        self.connection = options;
        self
    }

    /// The network; the real one by default.
    pub fn transport(mut self, transport: Arc<dyn Transport>) -> Self {
        self.transport = transport;
        self
    }

    /// Randomness for the choice of nodes and for waiting times; the system's by default.
    pub fn rng(mut self, rng: Arc<dyn Rng>) -> Self {
        self.rng = Some(rng);
        self
    }

    /// Makes the client without connecting; calls connect as needed.
    ///
    /// # Errors
    /// `Configuration`, naming the problem.
    pub fn build(self) -> Result<Client, ClientError> {
        let problem = |problem: &str| ClientError::Configuration {
            problem: problem.to_owned(),
        };
        let endpoints = &self.endpoints;
        if endpoints.is_empty() {
            return Err(problem("no endpoints"));
        }
        if let Some(endpoint) = endpoints.iter().find(|endpoint| !is_host_port(endpoint)) {
            return Err(problem(&format!("endpoint {endpoint:?} is not host:port")));
        }
        if !(1..=CONNECTIONS_MAX).contains(&self.connections) {
            return Err(problem("connections must be 1 to 1024"));
        }
        let rng = match self.rng {
            Some(rng) => rng,
            None => seeded_by_system()?,
        };
        let count = u64::try_from(endpoints.len()).unwrap_or(u64::MAX);
        let first = usize::try_from(rng.next_u64() % count).unwrap_or(0);
        // Lanes begin at successive endpoints, from a random one: load spreads over the nodes.
        let lanes = (0..self.connections)
            .map(|lane| Lane::new(endpoints.len(), (first + lane) % endpoints.len()))
            .collect();
        let settings = Settings {
            endpoints: self.endpoints,
            timeout: self.timeout,
            attempt_timeout: self.attempt_timeout,
            connect_timeout: self.connect_timeout,
            connection: self.connection,
            transport: self.transport,
            rng,
        };
        Ok(Client {
            inner: Arc::new(Inner {
                settings,
                lanes,
                next_lane: AtomicUsize::new(0),
            }),
        })
    }

    /// Makes the client and opens a first connection.
    ///
    /// # Errors
    /// `Configuration`; `Unavailable` when no node answers within the timeout; `Refused`.
    pub async fn connect(self) -> Result<Client, ClientError> {
        let client = self.build()?;
        client.reach().await?;
        Ok(client)
    }
}

/// Choices and waiting times need randomness, not secrets: one number of the system is enough.
fn seeded_by_system() -> Result<Arc<dyn Rng>, ClientError> {
    let system = OsRng::open().map_err(|error| ClientError::Configuration {
        problem: format!("no randomness: {error}"),
    })?;
    Ok(Arc::new(SeededRng::new(system.next_u64())))
}

fn is_host_port(endpoint: &str) -> bool {
    endpoint
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok_and(|p| p > 0))
}
