//! A lane: one connection at a time, to whichever endpoint works.
//!
//! Callers share the connection. When one of them finds it unusable it leaves it, and the next
//! caller opens one to the following endpoint; callers that still wait on the old one keep it
//! until they are done.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::{Instant, timeout_at};

use super::builder::Settings;
use crate::connection::{ConnectError, Connection};

pub(super) struct Lane {
    state: Mutex<State>,
    /// Held while dialling, so that one caller dials and the others wait for the result.
    dialling: tokio::sync::Mutex<()>,
}

struct State {
    connection: Option<Connection>,
    endpoint: usize,
}

impl Lane {
    pub(super) fn new(endpoint: usize) -> Self {
        Self {
            state: Mutex::new(State {
                connection: None,
                endpoint,
            }),
            dialling: tokio::sync::Mutex::new(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection in use, or a new one. `None` when another caller was still dialling at the
    /// deadline.
    pub(super) async fn connection(
        &self,
        settings: &Settings,
        deadline: Instant,
    ) -> Result<Connection, Option<ConnectError>> {
        if let Some(connection) = self.current() {
            return Ok(connection);
        }
        let _dialling = timeout_at(deadline, self.dialling.lock())
            .await
            .map_err(|_| None)?;
        if let Some(connection) = self.current() {
            return Ok(connection);
        }
        let endpoint = self.lock().endpoint;
        let dial_deadline = deadline.min(Instant::now() + settings.connect_timeout);
        let opened = Connection::open(
            settings.transport.as_ref(),
            &settings.endpoints[endpoint],
            &settings.connection,
            dial_deadline,
        )
        .await;
        let mut state = self.lock();
        match opened {
            Ok(connection) => {
                state.connection = Some(connection.clone());
                Ok(connection)
            }
            Err(error) => {
                state.endpoint = (endpoint + 1) % settings.endpoints.len();
                Err(Some(error))
            }
        }
    }

    /// The connection in use, unless it has ended; then the lane moves on.
    fn current(&self) -> Option<Connection> {
        let connection = self.lock().connection.clone()?;
        if connection.closed().is_none() {
            return Some(connection);
        }
        None
    }

    /// Moves on to the next endpoint, if this connection is still the one in use.
    pub(super) fn leave(&self, settings: &Settings, connection: &Connection) {
        let mut state = self.lock();
        let is_current = state
            .connection
            .as_ref()
            .is_some_and(|current| current.is_same(connection));
        if is_current {
            state.connection = None;
            state.endpoint = (state.endpoint + 1) % settings.endpoints.len();
        }
    }
}
