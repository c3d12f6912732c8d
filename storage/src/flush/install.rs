//! The installation of a shipped state in the place of a keyspace.

use std::sync::Arc;

use super::log_wait::LogWait;
use super::{FlushControl, FlushParts};
use crate::catalog::Committed;
use crate::error::StorageError;
use crate::keyspace::Keyspace;
use crate::staging::StagedVersion;

/// Told once how it went.
pub(super) type Answer = Box<dyn FnOnce(Result<(), StorageError>) + Send>;

/// An install that somebody asked for. When it is dropped, the answer is that the database was
/// closed.
pub(super) struct InstallRequest {
    keyspace: Keyspace,
    staged: Option<StagedVersion>,
    answer: Option<Answer>,
}

impl InstallRequest {
    pub(super) fn new(keyspace: Keyspace, staged: StagedVersion, answer: Answer) -> Self {
        Self {
            keyspace,
            staged: Some(staged),
            answer: Some(answer),
        }
    }

    pub(super) fn is_of(&self, keyspace: &Keyspace) -> bool {
        self.keyspace.is(keyspace)
    }

    pub(super) fn answer(mut self, result: Result<(), StorageError>) {
        if let Some(answer) = self.answer.take() {
            answer(result);
        }
    }
}

impl Drop for InstallRequest {
    fn drop(&mut self) {
        if let Some(answer) = self.answer.take() {
            answer(Err(StorageError::Closed));
        }
    }
}

/// An install on its way: it waits for the log, since what the log holds behind the old state may
/// contradict the new one and must not come to light after it.
pub(super) struct Install {
    request: InstallRequest,
    log: LogWait,
}

impl Install {
    pub(super) fn begin(
        request: InstallRequest,
        parts: &FlushParts,
        control: &Arc<FlushControl>,
    ) -> Self {
        Self {
            request,
            log: LogWait::start(&parts.wal, control),
        }
    }

    pub(super) fn log(&self) -> &LogWait {
        &self.log
    }

    /// Gives the request back with the failure of the log.
    pub(super) fn refuse(self, error: StorageError) -> (InstallRequest, Result<(), StorageError>) {
        (self.request, Err(error))
    }

    /// Binds the keyspace's name to the staged state; gives the request back with what came of it.
    pub(super) fn commit(
        mut self,
        parts: &FlushParts,
    ) -> (InstallRequest, Result<(), StorageError>) {
        let Some(staged) = self.request.staged.take() else {
            return (self.request, Err(StorageError::Closed));
        };
        let keyspace = &self.request.keyspace;
        let sources = keyspace.sources();
        let (old, newest) = (sources.version().id(), sources.active().published());
        drop(sources);
        let publish = |version: &Arc<_>| keyspace.publish_installed(version);
        let result = match parts.catalog.replace(old, staged, newest, publish) {
            Ok(Committed::Published(_)) => Ok(()),
            // Nobody but this job replaces a keyspace, so it can only have ended.
            Ok(Committed::Declined) => Err(StorageError::Closed),
            Err(error) => Err(error),
        };
        (self.request, result)
    }
}
