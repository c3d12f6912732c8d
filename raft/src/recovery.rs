//! Bringing the state up to date at start: what was committed and not flushed is applied again.
//!
//! The state lives in memory until it is flushed, so after a restart it is behind the log. openraft
//! would catch up by itself, but reads whole pieces of the log without a limit of bytes; this does
//! it in bounded chunks and before openraft starts, so that a replica never shows a state older
//! than the one it showed before.

use std::sync::Arc;

use kelp_storage::Log;

use crate::applier::{Applier, Chunk, Occasion, Unflushed};
use crate::error::StartError;
use crate::log_store::{LogStore, READ_BYTES_MAX};
use crate::message::Meta;
use crate::model::LogIndex;
use crate::options::{RaftOptions, RaftParts};
use crate::snapshot::described;
use crate::state::{StateError, StateReader};
use crate::type_config::position_of;

/// Opens the state and brings it up to what is known to be committed.
pub(crate) async fn open_state(
    options: &RaftOptions,
    parts: &RaftParts,
    log: &Log,
    store: &LogStore,
    unflushed: Arc<Unflushed>,
) -> Result<(Applier, StateReader, Meta), StartError> {
    let reader = StateReader::open(&parts.database, options.group)?;
    let keyspace = reader.keyspace().clone();
    let executor = &*parts.seams.executor;
    let observer = Arc::clone(&parts.observer);
    let spawned = Applier::spawn(executor, keyspace, options.node, observer, unflushed);
    let applier = spawned.map_err(state_error)?;
    let start = match catch_up(log, store, &applier).await {
        Ok(()) => described(&reader.view()).map_err(state_error),
        Err(error) => Err(error),
    };
    let start = start.and_then(|start| discard_overtaken(log, &start).map(|()| start));
    match start {
        Ok(start) => Ok((applier, reader, start)),
        Err(error) => {
            applier.stop();
            Err(error)
        }
    }
}

async fn catch_up(log: &Log, store: &LogStore, applier: &Applier) -> Result<(), StartError> {
    let needed = next_after(applier);
    let purged = log.purged().map(|purged| purged.index);
    if let Some(first) = purged.map(LogIndex::next).filter(|first| *first > needed) {
        return Err(StartError::LogGap { needed, first });
    }
    replay(log, store, applier).await
}

/// Empties a log that ends before the state: a snapshot was installed, and a power cut came before
/// the log was discarded. openraft would do the same by log id, but the log may end with an entry
/// of a later term than the state, of a leader that nobody followed.
fn discard_overtaken(log: &Log, start: &Meta) -> Result<(), StartError> {
    let Some(applied) = start.last_log_id.as_ref().map(position_of) else {
        return Ok(());
    };
    let end = log.last().or(log.purged()).map(|end| end.index);
    if end < Some(applied.index) {
        tracing::info!(?end, %applied.index, "the state is beyond the end of the log");
        log.discard_prefix(applied)?;
    }
    Ok(())
}

/// The first entry that the state lacks.
fn next_after(applier: &Applier) -> LogIndex {
    let done = applier.progress().borrow().applied;
    done.map_or(LogIndex::new(0), LogIndex::next)
}

async fn replay(log: &Log, store: &LogStore, applier: &Applier) -> Result<(), StartError> {
    let Some(committed) = log.committed() else {
        return Ok(());
    };
    let mut next = next_after(applier).get();
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

fn state_error(error: StateError) -> StartError {
    match error {
        StateError::Storage(error) => StartError::Storage(error),
        corrupt => StartError::Corrupt(corrupt.to_string()),
    }
}
