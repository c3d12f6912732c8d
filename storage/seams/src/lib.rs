//! The doors through which time, randomness and background work enter Kelp.
//!
//! Production code receives an `Arc<dyn Clock>`, `Arc<dyn Rng>` and `Arc<dyn Executor>` and never
//! asks the operating system itself. That is what lets the same code run under a simulator with a
//! seed and a virtual clock. This crate knows the standard library only.
//!
//! Background work is a [`Job`]: a small state machine that is stepped, does a bounded amount of
//! work per step and never waits for another job. [`ThreadExecutor`] gives each job a thread;
//! [`SteppedExecutor`] runs jobs only when a test or a simulator says so.

mod blocking;
mod clock;
mod executor;
mod rng;
mod stepped;
mod threads;

pub use blocking::{Blocking, WorkLost, blocking};
pub use clock::{Clock, ManualClock, Monotonic, SystemClock, WallMillis};
pub use executor::{Completion, Executor, Job, JobControl, JobHandle, Next, Step};
pub use rng::{OsRng, Rng, SeededRng};
pub use stepped::SteppedExecutor;
pub use threads::ThreadExecutor;
