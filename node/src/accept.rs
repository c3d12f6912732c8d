//! Accepting connections, the same for every port: a failed accept is no end, only a pause.
//!
//! Accepting fails when the process is out of file descriptors or memory. Trying again at once
//! would burn a core, and a log line for each failure would fill the disk next.

use std::net::SocketAddr;
use std::time::Duration;

use kelp_client::{BoxStream, Listener};
use tokio::time::{Instant, sleep_until};

/// Pause after `accept` fails: only time mends a shortage of descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// A line about what anybody can cause is logged at most this often.
const LOG_INTERVAL: Duration = Duration::from_secs(1);

/// An open port.
pub(crate) struct Accepting {
    listener: Box<dyn Listener>,
    port: &'static str,
    log: LogLimit,
    resume_at: Option<Instant>,
}

impl Accepting {
    /// Accepts on `listener`; `port` names it in the log.
    pub(crate) fn new(listener: Box<dyn Listener>, port: &'static str) -> Self {
        Self {
            listener,
            port,
            log: LogLimit::default(),
            resume_at: None,
        }
    }

    /// The next connection. Cancel-safe: a pause that was cut short goes on with the next call.
    pub(crate) async fn next(&mut self) -> (BoxStream, SocketAddr) {
        loop {
            if let Some(at) = self.resume_at {
                sleep_until(at).await;
                self.resume_at = None;
            }
            match self.listener.accept().await {
                Ok(accepted) => return accepted,
                Err(error) => {
                    let now = Instant::now();
                    self.resume_at = Some(now + PAUSE);
                    if let Some(suppressed) = self.log.permits(now) {
                        let port = self.port;
                        tracing::warn!(port, %error, suppressed, "cannot accept a connection");
                    }
                }
            }
        }
    }
}

/// Lets one log line through per second.
#[derive(Default)]
pub(crate) struct LogLimit {
    last: Option<Instant>,
    suppressed: u64,
}

impl LogLimit {
    /// Whether a line may be logged now; if so, how many were not since the last one.
    pub(crate) fn permits(&mut self, now: Instant) -> Option<u64> {
        if self.last.is_some_and(|last| now - last < LOG_INTERVAL) {
            self.suppressed += 1;
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::atomic::{AtomicU32, Ordering};

    use futures_util::FutureExt;
    use futures_util::future::BoxFuture;

    use super::*;

    /// Runs out of file descriptors twice, then accepts.
    #[derive(Default)]
    struct Short {
        failures: AtomicU32,
    }

    impl Listener for Short {
        fn accept(&self) -> BoxFuture<'_, io::Result<(BoxStream, SocketAddr)>> {
            async {
                if self.failures.fetch_add(1, Ordering::Relaxed) < 2 {
                    return Err(io::Error::other("too many open files"));
                }
                let stream: BoxStream = Box::new(tokio::io::duplex(1).0);
                Ok((stream, SocketAddr::from(([127, 0, 0, 1], 1))))
            }
            .boxed()
        }

        fn local_addr(&self) -> io::Result<SocketAddr> {
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    #[tokio::test]
    async fn a_shortage_pauses_the_port_and_does_not_end_it() {
        let mut accepting = Accepting::new(Box::new(Short::default()), "test");
        let begun = Instant::now();
        let (_, address) = accepting.next().await;
        assert_eq!(address.port(), 1);
        assert!(Instant::now() - begun >= 2 * PAUSE);
    }

    #[test]
    fn one_line_a_second_tells_how_many_were_left_out() {
        let mut log = LogLimit::default();
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        assert_eq!(log.permits(at(0)), Some(0));
        assert_eq!(log.permits(at(10)), None);
        assert_eq!(log.permits(at(999)), None);
        assert_eq!(log.permits(at(1_000)), Some(2));
        assert_eq!(log.permits(at(1_001)), None);
        assert_eq!(log.permits(at(5_000)), Some(1));
    }
}
