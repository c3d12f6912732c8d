//! From an address to a connection that may be used: dial, TLS, hello.

use std::sync::Arc;

use kelp_wire::{HELLO_VERSION, Hello, HelloReply, Request, Status};
use rustls::pki_types::ServerName;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;

use super::driver::Driver;
use super::shared::Shared;
use super::{About, CallError, ConnectError, Connection, ConnectionOptions, Handle, Reply, Tls};
use crate::transport::{BoxStream, Transport};

pub(super) async fn open(
    transport: &dyn Transport,
    address: &str,
    options: &ConnectionOptions,
    deadline: Instant,
) -> Result<Connection, ConnectError> {
    let timed_out = || ConnectError::TimedOut {
        address: address.to_owned(),
    };
    let stream = timeout_at(deadline, dial(transport, address, options.tls.as_ref()))
        .await
        .map_err(|_| timed_out())??;
    let shared = Arc::new(Shared::new(options));
    // The task ends with the last handle: see `Handle`.
    tokio::spawn(Driver::new(Arc::clone(&shared), stream, options));
    let handle = Arc::new(Handle { shared });
    let reply = say_hello(&handle, options, deadline)
        .await
        .map_err(|error| match error {
            CallError::TimedOut { .. } => timed_out(),
            CallError::Lost { reason, .. } => ConnectError::Lost {
                address: address.to_owned(),
                reason,
            },
            CallError::Invalid(fault) => ConnectError::Refused {
                address: address.to_owned(),
                status: fault.status(),
                message: fault.to_string(),
            },
        })?;
    let hello = judge(&reply, options).map_err(|(status, message)| ConnectError::Refused {
        address: address.to_owned(),
        status,
        message,
    })?;
    let about = Arc::new(About {
        hello,
        address: address.to_owned(),
    });
    Ok(Connection { handle, about })
}

async fn say_hello(
    handle: &Arc<Handle>,
    options: &ConnectionOptions,
    deadline: Instant,
) -> Result<Reply, CallError> {
    let hello = Hello {
        cluster: options.cluster,
        user: options.login.as_ref().map_or("", |login| &login.user),
        password: options
            .login
            .as_ref()
            .map_or(&[], |login| login.password.as_bytes()),
        ..Hello::default()
    };
    handle
        .try_start(&Request::Hello(hello), deadline)?
        .expect("a fresh connection has room for one request")
        .await
}

/// What the answer to hello means; a refusal is a status and its reason.
fn judge(reply: &Reply, options: &ConnectionOptions) -> Result<HelloReply, (Status, String)> {
    if reply.status != Status::Ok {
        return Err((reply.status, reply.error_text()));
    }
    let hello = HelloReply::decode(&reply.value)
        .map_err(|fault| (Status::BadRequest, fault.to_string()))?;
    if hello.version != HELLO_VERSION {
        let message = format!("node chose version {}, not {HELLO_VERSION}", hello.version);
        return Err((Status::Unsupported, message));
    }
    match options.cluster {
        Some(cluster) if cluster != hello.cluster => Err((
            Status::WrongCluster,
            format!("node belongs to cluster {}, not {cluster}", hello.cluster),
        )),
        _ => Ok(hello),
    }
}

async fn dial(
    transport: &dyn Transport,
    address: &str,
    tls: Option<&Tls>,
) -> Result<BoxStream, ConnectError> {
    let stream = transport
        .connect(address)
        .await
        .map_err(|source| ConnectError::Unreachable {
            address: address.to_owned(),
            source,
        })?;
    let Some(tls) = tls else {
        return Ok(stream);
    };
    let failed = |source| ConnectError::Tls {
        address: address.to_owned(),
        source,
    };
    let name = match &tls.server_name {
        Some(name) => name.clone(),
        None => host_of(address).map_err(failed)?,
    };
    let connector = TlsConnector::from(Arc::clone(&tls.config));
    let stream = connector.connect(name, stream).await.map_err(failed)?;
    Ok(Box::new(stream))
}

/// The host part of "host:port", also of "[v6]:port".
fn host_of(address: &str) -> std::io::Result<ServerName<'static>> {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    ServerName::try_from(host.to_owned())
        .map_err(|error| std::io::Error::new(std::io::ErrorKind::InvalidInput, error))
}
