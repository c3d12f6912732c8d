//! What a benchmark found: percentiles, errors, throughput; as a table for people and JSON for
//! programs.

use std::fmt::Write as _;
use std::time::Duration;

use hdrhistogram::Histogram;
use kelp_client::Executed;
use serde::Serialize;

use super::workload::Operation;
use crate::cli::{Exit, Failure};

/// Latencies above are counted as this: no request lives longer.
const LATENCY_MAX: Duration = Duration::from_mins(2);
/// Three digits are kept: more than a shared machine can tell apart.
const DIGITS: u8 = 3;

/// The latencies of one kind of request, in nanoseconds.
struct Latencies(Histogram<u64>);

impl Latencies {
    /// No request yet.
    fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, nanoseconds(LATENCY_MAX), DIGITS);
        Self(histogram.expect("the bounds are constants within the library's"))
    }

    /// Adds one request.
    fn record(&mut self, latency: Duration) {
        self.0.saturating_record(nanoseconds(latency).max(1));
    }

    /// These requests and those of `other`.
    fn joined(&self, other: &Self) -> Self {
        let mut joined = self.0.clone();
        joined
            .add(&other.0)
            .expect("both histograms have the same bounds");
        Self(joined)
    }

    fn summary(&self) -> LatencySummary {
        let microseconds = |nanoseconds: u64| thousandths(nanoseconds);
        let at = |quantile| microseconds(self.0.value_at_quantile(quantile));
        LatencySummary {
            count: self.0.len(),
            mean: (self.0.mean() / 1e3 * 10.0).round() / 10.0,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: microseconds(self.0.max()),
        }
    }
}

/// Requests that did not succeed, by what is known of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ErrorCounts {
    /// Surely not executed.
    not_executed: u64,
    /// Perhaps executed.
    unknown: u64,
}

impl ErrorCounts {
    /// Counts one failed request.
    fn count(&mut self, executed: Executed) {
        match executed {
            Executed::Unknown => self.unknown += 1,
            Executed::No | Executed::Yes => self.not_executed += 1,
        }
    }
}

/// What was seen within a measurement.
pub(crate) struct Tally {
    reads: Latencies,
    writes: Latencies,
    errors: ErrorCounts,
}

impl Tally {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        Self {
            reads: Latencies::new(),
            writes: Latencies::new(),
            errors: ErrorCounts::default(),
        }
    }

    /// Adds one request and what became of it.
    pub(crate) fn count(
        &mut self,
        operation: &Operation,
        outcome: Result<(), Executed>,
        latency: Duration,
    ) {
        match (outcome, operation) {
            (Err(executed), _) => self.errors.count(executed),
            (Ok(()), Operation::Read { .. }) => self.reads.record(latency),
            (Ok(()), Operation::Write { .. }) => self.writes.record(latency),
        }
    }
}

/// A whole measurement.
pub(crate) struct Measured {
    /// From the end of the warm-up to the last answer.
    pub(crate) elapsed: Duration,
    /// Processor time of this program in between, in user and system mode.
    pub(crate) cpu_seconds: f64,
    /// What was seen.
    pub(crate) tally: Tally,
}

/// Percentiles in microseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct LatencySummary {
    count: u64,
    mean: f64,
    p50: f64,
    p90: f64,
    p99: f64,
    p999: f64,
    max: f64,
}

/// What was asked for, as the report repeats it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Setup {
    pub(crate) endpoints: Vec<String>,
    pub(crate) clients: u16,
    pub(crate) pipeline: u16,
    pub(crate) outstanding: u32,
    pub(crate) value_bytes: u64,
    pub(crate) keys: u64,
    pub(crate) distribution: &'static str,
    pub(crate) read_percent: u8,
    pub(crate) rate: Option<u64>,
    pub(crate) seed: u64,
}

/// The whole report; latencies are in microseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Report {
    #[serde(flatten)]
    setup: Setup,
    seconds: f64,
    operations: u64,
    operations_per_second: f64,
    errors: u64,
    errors_not_executed: u64,
    errors_unknown: u64,
    cpu_seconds: f64,
    latency_us: LatencySummary,
    reads_us: LatencySummary,
    writes_us: LatencySummary,
}

impl Report {
    /// Sums a measurement up.
    pub(crate) fn new(setup: Setup, measured: &Measured) -> Self {
        let Tally {
            reads,
            writes,
            errors,
        } = &measured.tally;
        let operations = reads.0.len() + writes.0.len();
        let seconds = measured.elapsed.as_secs_f64();
        #[expect(
            clippy::cast_precision_loss,
            reason = "operation counts are far below 2^53"
        )]
        let per_second = operations as f64 / seconds.max(f64::EPSILON);
        Self {
            setup,
            seconds: (seconds * 1e3).round() / 1e3,
            operations,
            operations_per_second: (per_second * 10.0).round() / 10.0,
            errors: errors.not_executed + errors.unknown,
            errors_not_executed: errors.not_executed,
            errors_unknown: errors.unknown,
            cpu_seconds: (measured.cpu_seconds * 1e2).round() / 1e2,
            latency_us: reads.joined(writes).summary(),
            reads_us: reads.summary(),
            writes_us: writes.summary(),
        }
    }

    /// A benchmark in which nothing succeeded has failed itself.
    pub(crate) fn verdict(&self) -> Result<Exit, Failure> {
        if self.operations > 0 || self.errors == 0 {
            return Ok(Exit::Done);
        }
        let exit = if self.errors_unknown > 0 {
            Exit::Unknown
        } else {
            Exit::Unavailable
        };
        Err(Failure::new(
            exit,
            format!("all {} requests failed: see `kelp status`", self.errors),
        ))
    }

    /// One line of JSON.
    pub(crate) fn json(&self) -> String {
        let text = serde_json::to_string(self).expect("numbers and texts always encode");
        format!("{text}\n")
    }

    /// Lines for people.
    pub(crate) fn table(&self) -> String {
        let setup = &self.setup;
        let rate = setup
            .rate
            .map(|rate| format!(", at most {rate}/s"))
            .unwrap_or_default();
        let mut lines = vec![
            format!(
                "{} clients x {} outstanding, values of {} bytes, {} keys {}, {}% reads{rate}",
                setup.clients,
                setup.pipeline,
                setup.value_bytes,
                setup.keys,
                setup.distribution,
                setup.read_percent,
            ),
            format!(
                "{} operations in {:.1} s: {:.0}/s",
                self.operations, self.seconds, self.operations_per_second
            ),
            format!(
                "errors: {} not executed, {} unknown",
                self.errors_not_executed, self.errors_unknown
            ),
            format!(
                "{:<8}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}",
                "ms", "count", "mean", "p50", "p90", "p99", "p99.9", "max"
            ),
        ];
        for (name, summary) in [("reads", &self.reads_us), ("writes", &self.writes_us)] {
            if summary.count > 0 {
                lines.push(summary.line(name));
            }
        }
        lines.join("\n") + "\n"
    }
}

impl LatencySummary {
    fn line(&self, name: &str) -> String {
        let cells = [self.mean, self.p50, self.p90, self.p99, self.p999, self.max];
        let mut line = format!("{name:<8}{:>10}", self.count);
        for microseconds in cells {
            write!(line, "{:>10.3}", microseconds / 1e3).expect("a string takes every text");
        }
        line
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A thousandth of a number, to one digit.
#[expect(
    clippy::cast_precision_loss,
    reason = "latencies are far below 2^53 ns"
)]
fn thousandths(number: u64) -> f64 {
    (number as f64 / 100.0).round() / 10.0
}

#[cfg(test)]
mod tests;
