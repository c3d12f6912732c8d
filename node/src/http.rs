//! The HTTP port: metrics for Prometheus, liveness and readiness for whoever supervises it.
//!
//! `GET /metrics`, `/livez` and `/readyz` (`?verbose` lists the checks) and nothing else; no
//! request body is ever read. The port is small on purpose: few connections, short ones, small
//! headers, so that nobody can use it against the node. What ready means is the node's to say,
//! through [`ReadinessSource`].

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, StatusCode};
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use kelp_client::{BoxStream, Listener};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::accept::Accepting;
use crate::observe::Observer;
use crate::tls::PortTls;

#[cfg(test)]
mod tests;

/// Connections at a time. Prometheus and a few probes need one each.
const CONNECTIONS_MAX: usize = 64;

/// A connection is closed after this long, whatever it does; a scrape takes milliseconds.
const CONNECTION_TIME_MAX: Duration = Duration::from_mins(1);

/// Time for the first byte and the TLS handshake.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(5);

/// Time for a request's head, also for the next one on a kept connection.
const HEAD_TIME_MAX: Duration = Duration::from_secs(5);

/// Bytes of a request's head; the smallest that hyper accepts.
const HEAD_BYTES_MAX: usize = 8192;

/// Header lines of a request.
const HEADERS_MAX: usize = 64;

/// The version of the text format that Prometheus expects to be named.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

const PLAIN_TYPE: &str = "text/plain; charset=utf-8";

/// One thing that must hold before a node is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadinessCheck {
    /// A short name: `leader`, `applied`, `draining`.
    pub name: &'static str,
    /// Whether it holds.
    pub ready: bool,
    /// What a person wants to know when it does not.
    pub detail: String,
}

/// Says whether the node should get requests now.
pub trait ReadinessSource: Send + Sync + 'static {
    /// All checks; the node is ready when every one of them holds. Must be quick.
    fn checks(&self) -> Vec<ReadinessCheck>;
}

#[derive(Clone)]
struct Pages {
    observer: Observer,
    readiness: Arc<dyn ReadinessSource>,
}

/// Serves the HTTP port until `stop` says so, or its sender is gone; then closes all connections.
pub async fn run(
    listener: Box<dyn Listener>,
    tls: PortTls,
    observer: Observer,
    readiness: Arc<dyn ReadinessSource>,
    mut stop: watch::Receiver<bool>,
) {
    let router = router(Pages {
        observer,
        readiness,
    });
    let mut accepting = Accepting::new(listener, "http");
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let (stream, address) = tokio::select! {
            accepted = accepting.next() => accepted,
            // An error means that the sender is gone, which is a stop as well.
            _ = stop.wait_for(|stopped| *stopped) => break,
        };
        if connections.len() < CONNECTIONS_MAX {
            let served = serve(stream, tls.clone(), router.clone());
            connections.spawn(timeout(CONNECTION_TIME_MAX, served));
        } else {
            tracing::debug!(%address, "too many http connections, closed one");
        }
    }
    drop(accepting);
    connections.shutdown().await;
}

fn router(pages: Pages) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/livez", get(live))
        .route("/readyz", get(ready))
        .with_state(pages)
}

async fn serve(stream: BoxStream, tls: PortTls, router: Router) {
    let stream = match timeout(HANDSHAKE_TIME_MAX, tls.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "http connection refused"),
        Err(_) => return tracing::debug!("http connection was silent"),
    };
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "http connection ended");
    }
}

type Page = (StatusCode, [(HeaderName, &'static str); 1], String);

fn page(status: StatusCode, kind: &'static str, text: String) -> Page {
    (status, [(CONTENT_TYPE, kind)], text)
}

async fn metrics(State(pages): State<Pages>) -> Page {
    page(StatusCode::OK, METRICS_TYPE, pages.observer.render())
}

/// Answering at all is what liveness means: a node that is stuck on its disk ends by itself.
async fn live() -> Page {
    page(StatusCode::OK, PLAIN_TYPE, "ok\n".to_owned())
}

async fn ready(State(pages): State<Pages>, RawQuery(query): RawQuery) -> Page {
    let checks = pages.readiness.checks();
    let is_ready = checks.iter().all(|check| check.ready);
    let status = if is_ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let verbose = query.is_some_and(|query| query.split('&').any(|key| key == "verbose"));
    // A failed check is worth a line even if nobody asked.
    let shown = checks.iter().filter(|check| verbose || !check.ready);
    let lines = shown.map(|check| {
        let sign = if check.ready { '+' } else { '-' };
        format!("[{sign}]{} {}\n", check.name, check.detail)
    });
    let mut text: String = lines.collect();
    text.push_str(if is_ready { "ok\n" } else { "not ready\n" });
    page(status, PLAIN_TYPE, text)
}
