//! The end of the applier.

use futures_util::FutureExt;
use kelp_seams::{Clock, ManualClock, SteppedExecutor};

use super::*;
use crate::testing::Recorder;
use crate::testing_state::keyspace;

#[test]
fn chunk_that_comes_after_the_stop_fails_at_once() {
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::new());
    let executor = SteppedExecutor::new(clock);
    let observer = Arc::new(Recorder::default());
    let applier = Applier::spawn(&executor, keyspace(), NodeId::new(1), observer).unwrap();
    let before = applier.apply(Chunk::default(), Occasion::Running);
    let mut before = Box::pin(before);
    assert!(before.as_mut().now_or_never().is_none());
    applier.stop();
    let after = applier.apply(Chunk::default(), Occasion::Running);
    for late in [before.now_or_never(), after.now_or_never()] {
        assert!(late.expect("nobody will answer later").is_err());
    }
}
