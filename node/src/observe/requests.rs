//! Counters of client requests, cheap enough for every request.
//!
//! Counts lie in stripes, one per core or so, each on cache lines of its own. A thread adds to its
//! stripe with relaxed atomics; a scrape adds the stripes up. Which request was which is settled by
//! two array lookups: no label is compared and nothing is allocated.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use kelp_wire::{Opcode, Status};

/// Stripes. More than a handful of cores that count at the same instant gain nothing from more.
const STRIPES: usize = 8;

/// Rows: one per opcode, and one for requests whose opcode could not be told.
pub(super) const OPERATIONS: usize = Opcode::ALL.len() + 1;

/// The row of requests whose opcode could not be told.
const UNKNOWN: usize = Opcode::ALL.len();

pub(super) const STATUSES: usize = Status::ALL.len();

/// Durations are counted by powers of two of a nanosecond: 2^14 (16 us) to 2^33 (8.6 s).
pub(super) const EXPONENT_MIN: u32 = 14;

/// The last finite bound, see [`EXPONENT_MIN`].
pub(super) const EXPONENT_MAX: u32 = 33;

/// One bucket per bound and one for what is longer.
pub(super) const BUCKETS: usize = (EXPONENT_MAX - EXPONENT_MIN) as usize + 2;

const ROW_OF_OPCODE: [usize; 256] = {
    let mut rows = [UNKNOWN; 256];
    let mut row = 0;
    while row < Opcode::ALL.len() {
        rows[Opcode::ALL[row].to_byte() as usize] = row;
        row += 1;
    }
    rows
};

const COLUMN_OF_STATUS: [usize; 256] = {
    let mut columns = [0; 256];
    let mut column = 0;
    while column < STATUSES {
        columns[Status::ALL[column].to_byte() as usize] = column;
        column += 1;
    }
    columns
};

/// Counts client requests by operation and status, and their durations by operation.
#[derive(Default)]
pub struct RequestMetrics {
    stripes: [Stripe; STRIPES],
}

#[derive(Default)]
#[repr(align(128))]
struct Stripe {
    operations: [Operation; OPERATIONS],
}

#[derive(Default)]
struct Operation {
    statuses: [AtomicU64; STATUSES],
    buckets: [AtomicU64; BUCKETS],
    sum_nanos: AtomicU64,
}

/// The counts of one operation, summed over all stripes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OperationTotals {
    pub(super) statuses: [u64; STATUSES],
    pub(super) buckets: [u64; BUCKETS],
    pub(super) sum_nanos: u64,
}

impl RequestMetrics {
    /// Counts a request that has got its answer.
    pub fn request_finished(&self, opcode: Opcode, status: Status, elapsed: Duration) {
        let row = ROW_OF_OPCODE[usize::from(opcode.to_byte())];
        let operation = &self.stripe().operations[row];
        add(&operation.statuses[column_of(status)], 1);
        let nanos = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        add(&operation.buckets[bucket_of(nanos)], 1);
        add(&operation.sum_nanos, nanos);
    }

    /// Counts a request that was refused before it was known what it asked for.
    pub fn refused(&self, status: Status) {
        let operation = &self.stripe().operations[UNKNOWN];
        add(&operation.statuses[column_of(status)], 1);
    }

    /// The name of a row as a label.
    pub(super) fn operation_name(row: usize) -> &'static str {
        Opcode::ALL
            .get(row)
            .map_or("unknown", |opcode| opcode.name())
    }

    /// The totals of one row.
    pub(super) fn totals(&self, row: usize) -> OperationTotals {
        let mut totals = OperationTotals::default();
        for stripe in &self.stripes {
            let operation = &stripe.operations[row];
            add_all(&mut totals.statuses, &operation.statuses);
            add_all(&mut totals.buckets, &operation.buckets);
            let sum = operation.sum_nanos.load(Ordering::Relaxed);
            totals.sum_nanos = totals.sum_nanos.wrapping_add(sum);
        }
        totals
    }

    fn stripe(&self) -> &Stripe {
        &self.stripes[stripe_of_thread()]
    }
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

fn add_all(totals: &mut [u64], counters: &[AtomicU64]) {
    for (total, counter) in totals.iter_mut().zip(counters) {
        *total += counter.load(Ordering::Relaxed);
    }
}

fn column_of(status: Status) -> usize {
    COLUMN_OF_STATUS[usize::from(status.to_byte())]
}

/// The bucket of the smallest power of two that is not below `nanos`.
pub(super) fn bucket_of(nanos: u64) -> usize {
    let exponent = u64::BITS - nanos.saturating_sub(1).leading_zeros();
    let bucket = exponent.clamp(EXPONENT_MIN, EXPONENT_MAX + 1) - EXPONENT_MIN;
    usize::try_from(bucket).unwrap_or(BUCKETS - 1)
}

/// Threads take stripes in turn when they count for the first time.
fn stripe_of_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static STRIPE: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    STRIPE.with(|stripe| {
        if stripe.get() == usize::MAX {
            stripe.set(NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES);
        }
        stripe.get()
    })
}
