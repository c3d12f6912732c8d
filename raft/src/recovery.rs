//! Rebuilding the state at start: every entry that was known to be committed is applied again.
//!
//! The state lives in memory until it is flushed, so after a restart it is behind the log. openraft
//! would catch up by itself, but reads whole pieces of the log without a limit of bytes; this does
//! it in bounded chunks and before openraft starts, so that a replica never shows a state older
//! than the one it showed before.

use std::sync::Arc;

use kelp_storage::Log;

use crate::applier::{Applier, Chunk, Occasion};
use crate::error::StartError;
use crate::log_store::{LogStore, READ_BYTES_MAX};
use crate::options::{RaftOptions, RaftParts};
use crate::payload;
use crate::state::{StateError, StateReader};
use crate::state_machine::Applied;
use crate::type_config::{StoredMembership, log_id_of};

/// Opens the state and brings it up to what is known to be committed.
pub(crate) async fn open_state(
    options: &RaftOptions,
    parts: &RaftParts,
    log: &Log,
    store: &LogStore,
) -> Result<(Applier, StateReader, Applied), StartError> {
    let reader = StateReader::open(&parts.database, options.group)?;
    let keyspace = reader.keyspace().clone();
    let executor = &*parts.seams.executor;
    let observer = Arc::clone(&parts.observer);
    let applier =
        Applier::spawn(executor, keyspace, options.node, observer).map_err(state_error)?;
    if let Err(error) = replay(log, store, &applier).await {
        applier.stop();
        return Err(error);
    }
    let start = described(&reader)?;
    Ok((applier, reader, start))
}

async fn replay(log: &Log, store: &LogStore, applier: &Applier) -> Result<(), StartError> {
    let Some(committed) = log.committed() else {
        return Ok(());
    };
    let done = applier.progress().borrow().applied;
    let mut next = done.map_or(0, |last| last.get() + 1);
    let end = committed.index.get() + 1;
    if next >= end {
        return Ok(());
    }
    let last = log.last().map(|last| last.index);
    if last < Some(committed.index) {
        return Err(StartError::Corrupt(format!(
            "entry {} was committed, but the log ends before it",
            committed.index
        )));
    }
    tracing::info!(first = next, end, "re-applying committed entries");
    while next < end {
        let entries = store
            .read(next..end, READ_BYTES_MAX)
            .await
            .map_err(|error| StartError::Corrupt(error.to_string()))?;
        if entries.first().map(|entry| entry.log_id.index) != Some(next) {
            return Err(StartError::Corrupt(format!(
                "entry {next} is missing from the log"
            )));
        }
        let mut chunk = Chunk::default();
        for entry in entries {
            next = entry.log_id.index + 1;
            chunk.push(entry, 0, None);
        }
        let result = applier.apply(chunk, Occasion::Recovery).await;
        result.map_err(|error| StartError::Corrupt(error.to_string()))?;
    }
    Ok(())
}

/// What the state says about itself.
fn described(reader: &StateReader) -> Result<Applied, StartError> {
    let view = reader.view();
    let last = view.applied_position().map_err(state_error)?.map(log_id_of);
    let membership = match view.membership().map_err(state_error)? {
        Some(record) => {
            let membership = payload::decode_membership(record.payload)
                .map_err(|error| StartError::Corrupt(format!("membership record: {error}")))?;
            StoredMembership::new(Some(log_id_of(record.position)), membership)
        }
        None => StoredMembership::default(),
    };
    Ok(Applied { last, membership })
}

fn state_error(error: StateError) -> StartError {
    match error {
        StateError::Storage(error) => StartError::Storage(error),
        corrupt => StartError::Corrupt(corrupt.to_string()),
    }
}
