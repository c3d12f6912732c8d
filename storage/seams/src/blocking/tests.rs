use std::task::Wake;

use super::*;
use crate::{ManualClock, SteppedExecutor};

struct Ignore;

impl Wake for Ignore {
    fn wake(self: Arc<Self>) {}
}

fn poll_once<T>(future: &mut Blocking<T>) -> Poll<Result<T, WorkLost>> {
    let waker = Waker::from(Arc::new(Ignore));
    Pin::new(future).poll(&mut Context::from_waker(&waker))
}

#[test]
fn resolves_when_the_executor_ran_the_work() {
    let executor = SteppedExecutor::new(Arc::new(ManualClock::new()));
    let mut future = blocking(&executor, || 7);
    assert_eq!(poll_once(&mut future), Poll::Pending);
    executor.run_until_idle();
    assert_eq!(poll_once(&mut future), Poll::Ready(Ok(7)));
}

#[test]
fn lost_work_resolves_to_an_error() {
    let executor = SteppedExecutor::new(Arc::new(ManualClock::new()));
    let mut future = blocking(&executor, || 7);
    drop(executor);
    assert_eq!(poll_once(&mut future), Poll::Ready(Err(WorkLost)));
}
