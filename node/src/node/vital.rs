//! Tasks without which a node cannot go on.

use std::future::Future;

use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Tells of the first vital task that panicked.
#[derive(Clone)]
pub(super) struct Vitals {
    panicked: watch::Sender<Option<&'static str>>,
}

struct Guard {
    name: &'static str,
    vitals: Vitals,
}

impl Vitals {
    pub(super) fn new() -> Self {
        Self {
            panicked: watch::Sender::new(None),
        }
    }

    /// Runs `task`, whose panic ends the node: half a node would keep its leadership and serve
    /// nobody.
    pub(super) fn spawn(
        &self,
        name: &'static str,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> JoinHandle<()> {
        let guard = Guard {
            name,
            vitals: self.clone(),
        };
        tokio::spawn(async move {
            let _guard = guard;
            task.await;
        })
    }

    /// Resolves when a vital task has panicked, with its name.
    pub(super) async fn panicked(&self) -> &'static str {
        let mut panicked = self.panicked.subscribe();
        match panicked.wait_for(Option::is_some).await {
            Ok(name) => name.unwrap_or_default(),
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.vitals.panicked.send_replace(Some(self.name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_told_and_a_normal_end_is_not() {
        let vitals = Vitals::new();
        vitals.spawn("quiet", async {}).await.expect("ends");
        assert_eq!(*vitals.panicked.borrow(), None);
        let broken = vitals.spawn("loud", async { panic!("as planned") });
        assert_eq!(vitals.panicked().await, "loud");
        assert!(broken.await.is_err());
    }
}
