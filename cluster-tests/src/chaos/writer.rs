//! One writer: puts, deletes and sometimes reads its own keys, one call at a time.

use std::sync::Arc;

use anyhow::Result;
use bytes::Bytes;
use kelp_client::{Client, ClientError, Executed};
use kelp_seams::{Rng as _, SeededRng};
use tokio::sync::watch;

use super::ChaosOptions;
use super::nodes::Nodes;
use super::rounds::Progress;
use crate::{Effect, Ledger, Outcome, Violation};

/// One write in so many deletes its key.
const DELETE_EVERY: u64 = 5;
/// One write in so many is followed by a read through another client.
const READ_EVERY: u64 = 8;

/// A writer and what it has noted.
pub(super) struct Writer {
    number: u32,
    client: Client,
    reader: Client,
    keys: Vec<Bytes>,
    value_bytes: usize,
    fill: bool,
    random: SeededRng,
    progress: Arc<Progress>,
    stopped: watch::Receiver<bool>,
    ledger: Ledger,
    violations: Vec<Violation>,
    write_count: u64,
}

impl Writer {
    pub(super) fn new(
        options: &ChaosOptions,
        number: u32,
        nodes: &Nodes,
        progress: Arc<Progress>,
        stopped: watch::Receiver<bool>,
    ) -> Result<Self> {
        let client = if number.is_multiple_of(2) {
            nodes.pinned_client(usize::try_from(number / 2)?)?
        } else {
            nodes.roaming_client()?
        };
        // A run on resumed data has keys of its own, since its ledger knows nothing of the earlier.
        let run = options.seed;
        let keys = (0..options.keys_per_writer)
            .map(|key| Bytes::from(format!("chaos/{run:016x}/{number:03}/{key:05}")))
            .collect();
        Ok(Self {
            number,
            client,
            reader: nodes.roaming_client()?,
            keys,
            value_bytes: options.value_bytes,
            fill: options.fill,
            random: SeededRng::new(options.seed ^ u64::from(number + 1)),
            progress,
            stopped,
            ledger: Ledger::new(),
            violations: Vec::new(),
            write_count: 0,
        })
    }

    /// Writes until it is told to stop; returns what was answered, and what a read found wrong.
    pub(super) async fn run(mut self) -> Result<(Ledger, Vec<Violation>)> {
        if self.fill {
            for key in self.keys.clone() {
                let effect = self.next_put();
                self.write(&key, &effect).await;
                self.progress.filled();
            }
        }
        while !*self.stopped.borrow() {
            let key = self.pick_key();
            let effect = self.next_effect();
            self.write(&key, &effect).await;
        }
        Ok((self.ledger, self.violations))
    }

    async fn write(&mut self, key: &Bytes, effect: &Effect) {
        let answer = match effect {
            Effect::Put(value) => self.client.put(key, value).await.map(drop),
            Effect::Delete => self.client.delete(key).await.map(drop),
        };
        let outcome = outcome(answer.as_ref());
        self.ledger.record(key, effect, outcome);
        if outcome == Outcome::Acknowledged {
            self.progress.acknowledged();
            if self.random.next_u64().is_multiple_of(READ_EVERY) {
                self.read(key).await;
            }
        }
    }

    fn pick_key(&self) -> Bytes {
        let count = u64::try_from(self.keys.len()).unwrap_or(u64::MAX);
        let index = usize::try_from(self.random.next_u64() % count.max(1)).unwrap_or(0);
        self.keys[index].clone()
    }

    /// A delete or a put.
    fn next_effect(&mut self) -> Effect {
        if self.random.next_u64().is_multiple_of(DELETE_EVERY) {
            return Effect::Delete;
        }
        self.next_put()
    }

    /// A put of a value that was never written before and cannot be compressed.
    fn next_put(&mut self) -> Effect {
        self.write_count += 1;
        let mut value = format!("{:03} {:016} ", self.number, self.write_count).into_bytes();
        let head_bytes = value.len();
        value.resize(self.value_bytes, 0);
        self.random.fill(&mut value[head_bytes..]);
        Effect::Put(value.into())
    }

    /// A read of any node must see the write before it. A read that fails proves nothing.
    async fn read(&mut self, key: &Bytes) {
        if let Ok(found) = self.reader.get(key).await {
            let found = found.map(|record| record.value);
            self.violations
                .extend(self.ledger.check(key, found.as_ref()).err());
        }
    }
}

fn outcome(answer: Result<&(), &ClientError>) -> Outcome {
    match answer {
        Ok(()) => Outcome::Acknowledged,
        Err(error) => match error.executed() {
            Executed::No => Outcome::NotExecuted,
            // Executed, but the answer makes no sense: count on nothing.
            Executed::Unknown | Executed::Yes => Outcome::Unknown,
        },
    }
}
