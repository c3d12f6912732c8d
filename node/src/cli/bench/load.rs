//! The load itself: connections, requests under way, and what became of each.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use futures_util::future::join_all;
use kelp_client::wire::{ReadOptions, Request, WriteOptions};
use kelp_client::{ConnectError, Connection, ConnectionOptions, Executed, Status, TokioTransport};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, sleep_until};

use super::report::{Measured, Tally};
use super::workload::{Operation, Workload, WorkloadOptions};
use crate::cli::connection::Target;
use crate::cli::{Exit, Failure};
use crate::process::cpu_seconds;

/// How long to wait before a lost connection is opened anew.
const RECONNECT_PAUSE: Duration = Duration::from_millis(50);

/// How long, how fast.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub(super) rate: Option<u64>,
    pub(super) warm_up: Duration,
    pub(super) span: Span,
}

/// When a measurement is over.
#[derive(Clone, Copy, Debug)]
pub(super) enum Span {
    Time(Duration),
    Operations(u64),
}

/// What to run against which cluster.
pub(super) struct Load<'a> {
    pub(super) target: &'a Target,
    pub(super) clients: u16,
    pub(super) pipeline: u16,
    pub(super) workload: WorkloadOptions,
}

/// One client's connection, opened anew when it is lost.
pub(super) struct Link<'a> {
    target: &'a Target,
    current: RefCell<Connection>,
    reopening: Mutex<()>,
    next_endpoint: Cell<usize>,
}

impl<'a> Load<'a> {
    /// Opens every connection, each to the next endpoint in turn.
    pub(super) async fn connect(&self) -> Result<Vec<Link<'a>>, Failure> {
        let mut links = Vec::new();
        for index in 0..usize::from(self.clients) {
            let connection =
                open(self.target, index)
                    .await
                    .map_err(|error| match error.refusal() {
                        Some(_) => Failure::caused(Exit::Refused, &error)
                            .hint("see --ca, --cert and --key"),
                        None => Failure::caused(Exit::Unavailable, &error)
                            .hint("start the cluster, or name its nodes with --endpoints"),
                    })?;
            links.push(Link {
                target: self.target,
                current: RefCell::new(connection),
                reopening: Mutex::new(()),
                next_endpoint: Cell::new(index + 1),
            });
        }
        Ok(links)
    }

    /// Writes every key once.
    pub(super) async fn fill(&self, links: &[Link<'_>]) -> Result<(), Failure> {
        let next = Cell::new(0);
        let failure = RefCell::new(None);
        join_all(self.workers(links).map(async |(stream, link)| {
            let mut workload = Workload::new(&self.workload, stream);
            while next.get() < self.workload.keys && failure.borrow().is_none() {
                let key = workload.key(next.replace(next.get() + 1));
                let value = workload.value();
                let operation = Operation::Write { key, value };
                if let Err(executed) = link.perform(&operation).await {
                    failure.replace(Some(executed));
                }
            }
        }))
        .await;
        match failure.take() {
            None => Ok(()),
            Some(Executed::Unknown) => Err(Failure::new(
                Exit::Unknown,
                "--load: a write has an unknown outcome; start again",
            )),
            Some(_) => Err(Failure::new(
                Exit::Unavailable,
                "--load: a write was refused; see `kelp status`",
            )),
        }
    }

    /// Runs the workload and counts what falls behind the warm-up.
    pub(super) async fn measure(&self, links: &[Link<'_>], pace: &Pace) -> Measured {
        let begin = Instant::now() + pace.warm_up;
        let course = Course {
            begin,
            end: match pace.span {
                Span::Time(duration) => Some(begin + duration),
                Span::Operations(_) => None,
            },
            left: Cell::new(match pace.span {
                Span::Time(_) => u64::MAX,
                Span::Operations(operations) => operations,
            }),
            interval: pace
                .rate
                .map(|rate| Duration::from_secs(1).div_f64(as_float(rate))),
            next_at: Cell::new(Instant::now()),
        };
        let tally = RefCell::new(Tally::new());
        let work = join_all(self.workers(links).map(async |(stream, link)| {
            let mut workload = Workload::new(&self.workload, stream);
            while let Some(due) = course.next().await {
                let operation = workload.next();
                let outcome = link.perform(&operation).await;
                if due < begin {
                    continue;
                }
                let latency = due.elapsed();
                tally.borrow_mut().count(&operation, outcome, latency);
            }
        }));
        let cpu_at_begin = async {
            sleep_until(begin).await;
            cpu_seconds()
        };
        let (_, cpu_before) = tokio::join!(work, cpu_at_begin);
        Measured {
            elapsed: begin.elapsed(),
            cpu_seconds: cpu_seconds() - cpu_before,
            tally: tally.into_inner(),
        }
    }

    /// One worker for each request that may be under way.
    fn workers<'l>(
        &self,
        links: &'l [Link<'a>],
    ) -> impl Iterator<Item = (u64, &'l Link<'a>)> + use<'l, 'a> {
        let pipeline = usize::from(self.pipeline);
        let each = move |link| std::iter::repeat_n(link, pipeline);
        (0..).zip(links.iter().flat_map(each))
    }
}

/// When requests are due.
struct Course {
    begin: Instant,
    end: Option<Instant>,
    left: Cell<u64>,
    interval: Option<Duration>,
    next_at: Cell<Instant>,
}

impl Course {
    /// When the next request was due, once it is; `None` when the measurement is over.
    async fn next(&self) -> Option<Instant> {
        let due = match self.interval {
            None => Instant::now(),
            Some(interval) => self.next_at.replace(self.next_at.get() + interval),
        };
        if self.end.is_some_and(|end| due >= end) {
            return None;
        }
        if due >= self.begin {
            self.left.set(self.left.get().checked_sub(1)?);
        }
        if self.interval.is_some() {
            sleep_until(due).await;
        }
        Some(due)
    }
}

impl Link<'_> {
    /// Sends one request and waits for its answer.
    async fn perform(&self, operation: &Operation) -> Result<(), Executed> {
        let connection = self.current.borrow().clone();
        let deadline = Instant::now() + self.target.timeout;
        let request = match operation {
            Operation::Read { key } => Request::Get {
                database: 0,
                key,
                options: ReadOptions {
                    consistency: self.target.consistency,
                    ..ReadOptions::default()
                },
            },
            Operation::Write { key, value } => Request::Put {
                database: 0,
                key,
                value,
                options: WriteOptions::default(),
            },
        };
        let request = request.with_deadline(self.target.timeout);
        match connection.call(&request, deadline).await {
            Ok(reply) => match reply.status {
                Status::Ok | Status::NotFound => Ok(()),
                refusal => Err(refusal.executed()),
            },
            Err(error) => {
                if connection.closed().is_some() {
                    self.reopen(&connection).await;
                }
                Err(error.executed())
            }
        }
    }

    /// Opens the connection anew, unless another worker just did.
    async fn reopen(&self, lost: &Connection) {
        let _reopening = self.reopening.lock().await;
        if !self.current.borrow().is_same(lost) {
            return;
        }
        sleep(RECONNECT_PAUSE).await;
        let index = self.next_endpoint.replace(self.next_endpoint.get() + 1);
        if let Ok(connection) = open(self.target, index).await {
            self.current.replace(connection);
        }
    }
}

async fn open(target: &Target, index: usize) -> Result<Connection, ConnectError> {
    let endpoint = &target.endpoints[index % target.endpoints.len()];
    let options = ConnectionOptions {
        tls: target.tls.clone(),
        ..ConnectionOptions::default()
    };
    let deadline = Instant::now() + target.timeout;
    Connection::open(&TokioTransport, endpoint, &options, deadline).await
}

#[expect(clippy::cast_precision_loss, reason = "a rate is far below 2^53")]
fn as_float(rate: u64) -> f64 {
    rate as f64
}
