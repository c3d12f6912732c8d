//! How commands reach a cluster: endpoints, TLS, timeouts, and what a failed call means for the
//! exit code.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use kelp_client::{
    Client, ClientBuilder, ClientError, Consistency, Executed, RequestOptions, Status, Tls,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use super::{Environment, Exit, Failure};
use crate::config::quantity::parse_duration;
use crate::process::files;

/// Where a cluster started with defaults answers.
const ENDPOINT_DEFAULT: &str = "127.0.0.1:4800";
/// How long a call may take, all attempts together.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(5);
/// How old a stale read may be when no age is given.
const STALE_DEFAULT: Duration = Duration::from_secs(1);
/// Far above any certificate or key.
const PEM_BYTES_MAX: u64 = 1 << 20;

/// Options of every command that talks to a cluster; they may stand before or behind the command's
/// name.
#[derive(Clone, Debug, Default, Args)]
#[expect(clippy::doc_markdown, reason = "these comments are the help texts")]
#[command(next_help_heading = "Connection")]
pub struct ClientArgs {
    /// Nodes to use, any of the cluster: HOST:PORT,HOST:PORT [default: 127.0.0.1:4800] [env:
    /// KELP_ENDPOINTS]
    #[arg(long, value_name = "ADDRS")]
    endpoints: Option<String>,
    /// Speak TLS and trust this authority's certificate [env: KELP_CA]
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Show this client certificate [env: KELP_CERT]
    #[arg(long, value_name = "FILE")]
    cert: Option<PathBuf>,
    /// The key of that certificate [env: KELP_KEY]
    #[arg(id = "key-file", long = "key", value_name = "FILE")]
    key: Option<PathBuf>,
    /// How long a request may take, as in 500ms or 5s, all attempts together [default: 5s] [env:
    /// KELP_TIMEOUT]
    #[arg(long, value_name = "DURATION")]
    timeout: Option<String>,
    /// How fresh reads are: linearizable, or stale[:MS] to accept data up to MS milliseconds old
    /// [default: linearizable]
    #[arg(long, value_name = "LEVEL")]
    consistency: Option<String>,
    /// How to print: table for people, json for programs, raw for the bytes alone [default: table]
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    output: Option<OutputFormat>,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// For people
    #[default]
    Table,
    /// For programs
    Json,
    /// The bytes alone
    Raw,
}

/// Checked options of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// At least one "host:port".
    pub(crate) endpoints: Vec<String>,
    /// For calls, all attempts together.
    pub(crate) timeout: Duration,
    /// TLS, if it is spoken.
    pub(crate) tls: Option<Tls>,
    /// For reads.
    pub(crate) consistency: Consistency,
    /// How to print.
    pub(crate) output: OutputFormat,
}

impl ClientArgs {
    /// Takes what was given behind the command's name over what was given before it, over the
    /// environment, over the defaults, and checks it.
    pub(crate) fn resolve(
        self,
        above: Self,
        environment: Environment<'_>,
    ) -> Result<Target, Failure> {
        let variable = |name: &str| environment(name).filter(|text| !text.is_empty());
        let path = |below: Option<PathBuf>, above: Option<PathBuf>, name: &str| {
            below
                .or(above)
                .or_else(|| variable(name).map(PathBuf::from))
        };
        let endpoints = self
            .endpoints
            .or(above.endpoints)
            .or_else(|| variable("KELP_ENDPOINTS"))
            .unwrap_or_else(|| ENDPOINT_DEFAULT.to_owned());
        let timeout = self
            .timeout
            .or(above.timeout)
            .or_else(|| variable("KELP_TIMEOUT"));
        let consistency = self
            .consistency
            .or(above.consistency)
            .or_else(|| variable("KELP_CONSISTENCY"));
        let tls = TlsFiles {
            ca: path(self.ca, above.ca, "KELP_CA"),
            cert: path(self.cert, above.cert, "KELP_CERT"),
            key: path(self.key, above.key, "KELP_KEY"),
        };
        Ok(Target {
            endpoints: parse_endpoints(&endpoints)?,
            timeout: match timeout {
                Some(text) => parse_timeout(&text)?,
                None => TIMEOUT_DEFAULT,
            },
            tls: tls.load()?,
            consistency: match consistency {
                Some(text) => parse_consistency(&text)?,
                None => Consistency::Linearizable,
            },
            output: self.output.or(above.output).unwrap_or_default(),
        })
    }
}

impl Target {
    /// A client for all endpoints. Nothing is dialled yet.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        build(self.builder().endpoints(self.endpoints.clone()))
    }

    /// A client for one node alone.
    pub(crate) fn client_of(&self, endpoint: &str) -> Result<Client, Failure> {
        build(self.builder().endpoints([endpoint]))
    }

    /// A client for all endpoints that spreads over several connections.
    pub(crate) fn client_over(&self, connections: usize) -> Result<Client, Failure> {
        let builder = self.builder().endpoints(self.endpoints.clone());
        build(builder.connections(connections))
    }

    /// What every read is sent with.
    pub(crate) fn request_options(&self) -> RequestOptions {
        RequestOptions {
            consistency: self.consistency,
            ..RequestOptions::default()
        }
    }

    fn builder(&self) -> ClientBuilder {
        let builder = Client::builder().timeout(self.timeout);
        match &self.tls {
            Some(tls) => builder.tls(tls.clone()),
            None => builder,
        }
    }
}

fn build(builder: ClientBuilder) -> Result<Client, Failure> {
    builder.build().map_err(|error| Failure::from(&error))
}

fn parse_endpoints(text: &str) -> Result<Vec<String>, Failure> {
    let endpoints: Vec<String> = text
        .split(',')
        .map(str::trim)
        .filter(|endpoint| !endpoint.is_empty())
        .map(ToOwned::to_owned)
        .collect();
    if endpoints.is_empty() {
        return Err(Failure::usage(
            "--endpoints: give at least one HOST:PORT, as in 127.0.0.1:4800",
        ));
    }
    Ok(endpoints)
}

fn parse_timeout(text: &str) -> Result<Duration, Failure> {
    let timeout =
        parse_duration(text).map_err(|error| Failure::usage(format!("--timeout: {error}")))?;
    if timeout.is_zero() {
        return Err(Failure::usage(
            "--timeout: 0 leaves no time for an answer: give one, as in 5s",
        ));
    }
    Ok(timeout)
}

fn parse_consistency(text: &str) -> Result<Consistency, Failure> {
    let age = match text.split_once(':') {
        None if text == "linearizable" => return Ok(Consistency::Linearizable),
        None if text == "stale" => Some(STALE_DEFAULT),
        Some(("stale", milliseconds)) => milliseconds.parse().ok().map(Duration::from_millis),
        _ => None,
    };
    age.map(|max_age| Consistency::Stale { max_age })
        .ok_or_else(|| {
            Failure::usage(format!(
                "--consistency: '{text}' is neither linearizable nor stale nor stale:MS"
            ))
        })
}

struct TlsFiles {
    ca: Option<PathBuf>,
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
}

impl TlsFiles {
    fn load(self) -> Result<Option<Tls>, Failure> {
        let identity = match (self.cert, self.key) {
            (None, None) => None,
            (Some(cert), Some(key)) => Some((cert, key)),
            _ => return Err(Failure::usage("give --cert and --key together or neither")),
        };
        let Some(ca) = self.ca else {
            return match identity {
                None => Ok(None),
                Some(_) => Err(Failure::usage(
                    "--cert needs --ca: the certificate of the cluster's authority, \
                     ca.crt in every bundle",
                )),
            };
        };
        let mut roots = RootCertStore::empty();
        for certificate in read_certificates(&ca)? {
            roots
                .add(certificate)
                .map_err(|error| unusable(&ca, &error))?;
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| unusable(&ca, &error))?
            .with_root_certificates(roots);
        let config = match identity {
            None => builder.with_no_client_auth(),
            Some((cert, key)) => builder
                .with_client_auth_cert(read_certificates(&cert)?, read_key(&key)?)
                .map_err(|error| unusable(&cert, &error))?,
        };
        Ok(Some(Tls {
            config: Arc::new(config),
            server_name: None,
        }))
    }
}

fn read_pem(path: &Path) -> Result<Vec<u8>, Failure> {
    files::read(path, PEM_BYTES_MAX).map_err(|error| Failure::file(Exit::Usage, path, &error))
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&read_pem(path)?)
        .collect::<Result<_, _>>()
        .map_err(|error| unusable(path, &error))?;
    if certificates.is_empty() {
        return Err(unusable(path, &"no certificate in it"));
    }
    Ok(certificates)
}

fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, Failure> {
    PrivateKeyDer::from_pem_slice(&read_pem(path)?).map_err(|error| unusable(path, &error))
}

fn unusable(path: &Path, reason: &dyn std::fmt::Display) -> Failure {
    Failure::usage(format!("{}: {reason}", path.display()))
}

impl From<&ClientError> for Failure {
    fn from(error: &ClientError) -> Self {
        match error {
            ClientError::Configuration { .. } => Self::usage(error.to_string()),
            ClientError::Unavailable { reached, .. } => {
                let hint = if *reached {
                    "see `kelp status`, or name other nodes with --endpoints"
                } else {
                    "is a node running there? `kelp dev` or `kelp start` starts one; \
                     --endpoints names others"
                };
                Self::new(Exit::Unavailable, error.to_string()).hint(hint)
            }
            ClientError::OutcomeUnknown { .. } => Self::new(
                Exit::Unknown,
                format!("{error}; read before you write again: it may have been executed"),
            ),
            ClientError::Refused { status, .. } => {
                let exit = match status {
                    Status::BadRequest | Status::Unsupported => Exit::Usage,
                    _ => Exit::Refused,
                };
                let failure = Self::new(exit, error.to_string());
                match status {
                    // A node that says so itself needs no help.
                    Status::Refused if !failure.message.contains("--ca") => {
                        failure.hint("see --ca, --cert and --key")
                    }
                    _ => failure,
                }
            }
            other => Self::new(
                match other.executed() {
                    Executed::Unknown => Exit::Unknown,
                    Executed::No | Executed::Yes => Exit::Refused,
                },
                other.to_string(),
            ),
        }
    }
}

#[cfg(test)]
mod tests;
