//! Asks the node of this host whether it is ready, as whatever supervises it does.
//!
//! The question goes to the HTTP port that the node's own configuration names, with the node's own
//! certificate where that port wants one. So an image needs no other program to check a node.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use kelp_client::{BoxStream, TokioTransport, Transport};
use kelp_seams::SystemClock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::certs::Identity;
use crate::cli::{Exit, Failure};
use crate::config::NodeSettings;
use crate::tls::{OwnTls, TlsMaterial};

/// A node that needs longer is not ready.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(2);

/// Far above what `/readyz` ever says.
const ANSWER_BYTES_MAX: u64 = 64 << 10;

const REQUEST: &[u8] =
    b"GET /readyz?verbose HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// What the node says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Health {
    /// Whether it should get requests.
    pub(crate) is_ready: bool,
    /// One line per check.
    pub(crate) text: String,
}

/// Asks the node that `settings` configure.
///
/// # Errors
/// `Unavailable` when nothing answers there in time.
pub(crate) async fn ask(settings: &NodeSettings) -> Result<Health, Failure> {
    let address = reachable(settings.http);
    let no_answer = |what: &dyn std::fmt::Display| {
        Failure::new(
            Exit::Unavailable,
            format!("no answer from {address}: {what}"),
        )
    };
    let asked = async {
        let stream = TokioTransport.connect(&address.to_string()).await;
        let mut stream = stream.map_err(|error| no_answer(&error))?;
        if !settings.allows_plaintext(settings.http) {
            let tls = own_tls(settings)?;
            let secured = tls.connect(stream).await;
            stream = Box::new(secured.map_err(|error| no_answer(&error))?);
        }
        exchange(stream).await.map_err(|error| no_answer(&error))
    };
    let answer = timeout(ANSWER_TIME_MAX, asked).await;
    let answer = answer.map_err(|_| no_answer(&"it took too long"))??;
    parse(&answer).ok_or_else(|| no_answer(&"that is not a node's HTTP port"))
}

/// Where a listener is reached from its own host.
fn reachable(listener: SocketAddr) -> SocketAddr {
    let ip = match listener.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listener.port())
}

fn own_tls(settings: &NodeSettings) -> Result<OwnTls, Failure> {
    let material = TlsMaterial::load(&settings.certs, Arc::new(SystemClock::new()));
    let material = material.map_err(|error| Failure::caused(Exit::Usage, &error))?;
    let Identity::Node(cluster, node) = material.summary().identity else {
        let certs = settings.certs.display();
        return Err(Failure::usage(format!(
            "{certs}: not the certificate of a node"
        )));
    };
    let tls = OwnTls::new(&material, cluster, node, b"http/1.1");
    tls.map_err(|error| Failure::caused(Exit::Usage, &error))
}

async fn exchange(mut stream: BoxStream) -> std::io::Result<String> {
    stream.write_all(REQUEST).await?;
    let mut answer = Vec::new();
    let read = stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).await;
    // A node that closes without a farewell in TLS has said everything all the same.
    if answer.is_empty() {
        read?;
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// The answer of a node's `/readyz`; `None` for anything else.
fn parse(answer: &str) -> Option<Health> {
    let (head, text) = answer.split_once("\r\n\r\n")?;
    let is_ready = match head.split(' ').nth(1)? {
        "200" => true,
        "503" => false,
        _ => return None,
    };
    Some(Health {
        is_ready,
        text: text.to_owned(),
    })
}

#[cfg(test)]
mod tests;
