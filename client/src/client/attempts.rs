//! The attempts at one call: which failures allow another, where, and after what wait.

use std::time::Duration;

use kelp_wire::{Executed, Request, Status};
use tokio::time::{Instant, sleep_until};

use super::builder::Settings;
use super::lane::Lane;
use crate::connection::{CallError, ConnectError, Reply};
use crate::error::ClientError;

/// First wait once every endpoint has been tried; a refused connection costs almost nothing.
const BACKOFF_MIN: Duration = Duration::from_millis(10);

/// Longest wait: a fraction of an election, so that a new leader is found soon.
const BACKOFF_MAX: Duration = Duration::from_millis(200);

/// Time kept back for the answer to a request whose deadline passes on the node.
const ANSWER_TIME_MAX: Duration = Duration::from_millis(100);

/// What a node may ask for as a wait; more would be a lie about our deadline.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(1);

/// Makes attempts until one decides the call or the time is over.
pub(super) async fn run(
    settings: &Settings,
    lane: &Lane,
    request: Request<'_>,
    timeout: Duration,
) -> Result<Reply, ClientError> {
    let deadline = Instant::now() + timeout;
    let mut course = Course::new(settings, deadline);
    loop {
        let failure = match attempt(settings, lane, request, deadline).await {
            Verdict::Decided(result) => return result,
            Verdict::Again(failure) => failure,
        };
        course.wait(failure).await?;
    }
}

/// Opens a connection on the lane, trying the endpoints as a call does.
pub(super) async fn reach(settings: &Settings, lane: &Lane) -> Result<(), ClientError> {
    let deadline = Instant::now() + settings.timeout;
    let mut course = Course::new(settings, deadline);
    loop {
        match lane.connection(settings, deadline).await {
            Ok(_) => return Ok(()),
            Err(error) => course.wait(connect_failure(error)?).await?,
        }
    }
}

enum Verdict {
    Decided(Result<Reply, ClientError>),
    Again(Failure),
}

/// An attempt that surely changed nothing.
struct Failure {
    reason: String,
    /// There was a connection to a node.
    reached: bool,
    /// A node said so in words, which tells more than that another cannot be reached.
    by_node: bool,
    /// It will not heal with time, but another node may do better.
    lasting: Option<Status>,
    retry_after: Option<Duration>,
    then: Then,
}

/// What becomes of the connection after a failed attempt.
#[derive(Clone, Copy)]
enum Then {
    /// The same node again: it said when.
    Stay,
    /// Another node, but this connection is sound.
    Pass,
    /// Another node, and this connection is not to be used again.
    Leave,
}

impl Failure {
    /// The connection was lost or silent.
    fn lost(reason: String) -> Self {
        Self {
            reached: true,
            ..Self::unreached(reason)
        }
    }

    /// There was no connection.
    fn unreached(reason: String) -> Self {
        Self {
            reason,
            reached: false,
            by_node: false,
            lasting: None,
            retry_after: None,
            then: Then::Leave,
        }
    }

    /// A node said that it did not execute the request, and that another attempt makes sense.
    fn refused(reason: String, reply: &Reply) -> Self {
        // An overloaded node says when to come back; moving on would spread the overload.
        let retry_after = reply
            .retry_after
            .filter(|_| reply.status == Status::Overloaded);
        Self {
            reason,
            reached: true,
            by_node: true,
            lasting: None,
            retry_after,
            then: retry_after.map_or(Then::Pass, |_| Then::Stay),
        }
    }
}

async fn attempt(
    settings: &Settings,
    lane: &Lane,
    request: Request<'_>,
    deadline: Instant,
) -> Verdict {
    let connection = match lane.connection(settings, deadline).await {
        Ok(connection) => connection,
        Err(error) => {
            return match connect_failure(error) {
                Ok(failure) => Verdict::Again(failure),
                Err(error) => Verdict::Decided(Err(error)),
            };
        }
    };
    let now = Instant::now();
    let attempt_deadline = if request.is_write() {
        deadline
    } else {
        deadline.min(now + settings.attempt_timeout)
    };
    let remaining = attempt_deadline.saturating_duration_since(now);
    // The node gives up first, so that its word on what happened still arrives in time.
    let request =
        request.with_deadline(remaining.saturating_sub(ANSWER_TIME_MAX.min(remaining / 10)));
    let result = connection.call(&request, attempt_deadline).await;
    let verdict = judge(result, request.is_write());
    let then = match &verdict {
        Verdict::Decided(Err(ClientError::OutcomeUnknown { .. })) => Then::Leave,
        Verdict::Decided(_) => Then::Stay,
        Verdict::Again(failure) => failure.then,
    };
    match then {
        Then::Stay => {}
        Then::Pass => lane.pass(&connection),
        Then::Leave => lane.leave(&connection),
    }
    verdict
}

/// Whether a result decides the call.
fn judge(result: Result<Reply, CallError>, is_write: bool) -> Verdict {
    let reply = match result {
        Ok(reply) => reply,
        Err(CallError::Invalid(fault)) => {
            return Verdict::Decided(Err(ClientError::Invalid(fault)));
        }
        Err(error) if error.executed() == Executed::No => {
            return Verdict::Again(Failure::lost(error.to_string()));
        }
        Err(error) => {
            return Verdict::Decided(Err(ClientError::OutcomeUnknown {
                reason: error.to_string(),
            }));
        }
    };
    let reason = || format!("{}: {}", reply.status, reply.error_text());
    match reply.status {
        status if !status.is_error() => Verdict::Decided(Ok(reply)),
        status if status.is_transient() => Verdict::Again(Failure::refused(reason(), &reply)),
        Status::OutcomeUnknown if is_write => {
            Verdict::Decided(Err(ClientError::OutcomeUnknown { reason: reason() }))
        }
        Status::OutcomeUnknown => Verdict::Again(Failure::lost(reason())),
        status => Verdict::Decided(Err(ClientError::Refused {
            status,
            message: reply.error_text(),
        })),
    }
}

/// Whether another endpoint may do better after a failed connection.
fn connect_failure(error: Option<ConnectError>) -> Result<Failure, ClientError> {
    match error {
        Some(ConnectError::Refused {
            status, message, ..
        }) if !status.is_transient() => Err(ClientError::Refused { status, message }),
        Some(error) => Ok(Failure {
            lasting: error.refusal(),
            ..Failure::unreached(error.to_string())
        }),
        None => Ok(Failure::unreached("no connection in time".to_owned())),
    }
}

/// How a call fares: attempts so far, and how long to wait before the next.
struct Course<'a> {
    settings: &'a Settings,
    deadline: Instant,
    attempts: u32,
    backoff: Duration,
    reached: bool,
    /// The last refusal in words.
    refusal: Option<String>,
}

impl<'a> Course<'a> {
    fn new(settings: &'a Settings, deadline: Instant) -> Self {
        Self {
            settings,
            deadline,
            attempts: 0,
            backoff: BACKOFF_MIN,
            reached: false,
            refusal: None,
        }
    }

    /// Waits before the next attempt, or says that there is no time for one.
    ///
    /// A refusal that time does not heal, as of a certificate, ends the call when every endpoint
    /// has been tried and none took part. The first round over the endpoints is without waits.
    /// Then each wait is a random half to whole of a time that doubles, so that clients of a failed
    /// node do not return in step.
    async fn wait(&mut self, failure: Failure) -> Result<(), ClientError> {
        self.attempts += 1;
        let endpoints = u32::try_from(self.settings.endpoints.len()).unwrap_or(u32::MAX);
        let wait = match failure.retry_after {
            Some(asked) => self.jittered(asked.min(RETRY_AFTER_MAX)),
            None if self.attempts < endpoints => Duration::ZERO,
            None => {
                let wait = self.jittered(self.backoff);
                self.backoff = (self.backoff * 2).min(BACKOFF_MAX);
                wait
            }
        };
        self.reached |= failure.reached;
        if failure.by_node {
            self.refusal = Some(failure.reason.clone());
        }
        if let Some(status) = failure.lasting
            && self.attempts >= endpoints
            && !self.reached
        {
            return Err(ClientError::Refused {
                status,
                message: failure.reason,
            });
        }
        let next = Instant::now() + wait;
        if next >= self.deadline {
            return Err(ClientError::Unavailable {
                attempts: self.attempts,
                reached: self.reached,
                reason: self.refusal.take().unwrap_or(failure.reason),
            });
        }
        if !wait.is_zero() {
            sleep_until(next).await;
        }
        Ok(())
    }

    /// A random time between half of `wait` and `wait`.
    fn jittered(&self, wait: Duration) -> Duration {
        let per_mille = 500 + u32::try_from(self.settings.rng.next_u64() % 501).unwrap_or(500);
        wait * per_mille / 1_000
    }
}
