//! What was acknowledged, and what may therefore be found.
//!
//! Each key has one writer, which sends its next write when the last one is answered, and never
//! writes the same value twice. Then what a key may hold is easily said: the effect of its last
//! acknowledged write, or that of any write whose outcome is unknown. An unknown write may still be
//! on its way through another node, so it stays possible for ever, also after later acknowledged
//! ones. Everything else is a violation: a lost write, a write that came back, a deleted key that
//! lives, or the value of a write that was refused.

use std::collections::BTreeMap;

use bytes::Bytes;

/// What a write does to its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The key holds this value.
    Put(Bytes),
    /// The key is gone.
    Delete,
}

impl Effect {
    fn value(&self) -> Option<&Bytes> {
        match self {
            Self::Put(value) => Some(value),
            Self::Delete => None,
        }
    }
}

/// What the answer to a write said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is executed and durable.
    Acknowledged,
    /// It may be executed, now or later.
    Unknown,
    /// It never will be executed.
    NotExecuted,
}

/// Something that may not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Where it was found.
    pub key: Bytes,
    /// What was found; `None` when the key is absent.
    pub found: Option<Bytes>,
    /// What might have been there.
    pub possible: Vec<Option<Bytes>>,
}

/// The writes of all keys.
#[derive(Debug, Default)]
pub struct Ledger {
    keys: BTreeMap<Bytes, History>,
    acknowledged_count: u64,
    unknown_count: u64,
    refused_count: u64,
}

/// The writes of one key, as far as they still matter.
#[derive(Debug, Default)]
struct History {
    /// What the last acknowledged write left; absent from the start.
    settled: Option<Bytes>,
    /// What each write of unknown outcome would leave.
    open: Vec<Option<Bytes>>,
}

impl Ledger {
    /// An empty ledger.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes the answer to a write; the writes of one key come in the order they were sent.
    pub fn record(&mut self, key: &Bytes, effect: &Effect, outcome: Outcome) {
        let history = self.keys.entry(key.clone()).or_default();
        let value = effect.value().cloned();
        match outcome {
            Outcome::Acknowledged => {
                history.settled = value;
                self.acknowledged_count += 1;
            }
            Outcome::Unknown => {
                history.open.push(value);
                self.unknown_count += 1;
            }
            Outcome::NotExecuted => self.refused_count += 1,
        }
    }

    /// Judges what a read of `key` found, while no write of that key is on its way.
    ///
    /// # Errors
    /// The violation, when the key may not hold what was found.
    pub fn check(&self, key: &Bytes, found: Option<&Bytes>) -> Result<(), Violation> {
        let possible = match self.keys.get(key) {
            None => vec![None],
            Some(history) => {
                let mut possible = vec![history.settled.clone()];
                possible.extend(history.open.iter().cloned());
                possible
            }
        };
        if possible.iter().any(|value| value.as_ref() == found) {
            return Ok(());
        }
        Err(Violation {
            key: key.clone(),
            found: found.cloned(),
            possible,
        })
    }

    /// Judges the whole state as read through one node: every key of the ledger, and every key that
    /// was found without having been written.
    pub fn check_all(&self, state: &BTreeMap<Bytes, Bytes>) -> Vec<Violation> {
        let written = self.keys.keys().map(|key| (key, state.get(key)));
        let strange = state
            .iter()
            .filter(|(key, _)| !self.keys.contains_key(*key));
        written
            .chain(strange.map(|(key, value)| (key, Some(value))))
            .filter_map(|(key, found)| self.check(key, found).err())
            .collect()
    }

    /// Takes in the ledger of another writer, which has other keys.
    ///
    /// # Panics
    /// When both have written one key: then neither can be judged.
    pub fn merge(&mut self, other: Self) {
        for (key, history) in other.keys {
            let earlier = self.keys.insert(key, history);
            assert!(
                earlier.is_none(),
                "a key has one writer, {earlier:?} was there before"
            );
        }
        self.acknowledged_count += other.acknowledged_count;
        self.unknown_count += other.unknown_count;
        self.refused_count += other.refused_count;
    }

    /// Writes that were acknowledged.
    pub fn acknowledged_count(&self) -> u64 {
        self.acknowledged_count
    }

    /// Writes whose outcome is unknown.
    pub fn unknown_count(&self) -> u64 {
        self.unknown_count
    }

    /// Writes that were refused as not executed.
    pub fn refused_count(&self) -> u64 {
        self.refused_count
    }
}

#[cfg(test)]
mod tests;
