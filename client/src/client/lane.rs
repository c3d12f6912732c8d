//! A lane: one connection in use at a time, to whichever endpoint works.
//!
//! Callers share the connection. One that finds its node refusing passes on to the next endpoint
//! and keeps the connection for a while, because a cluster without leader refuses everywhere for a
//! moment and dialling anew on each turn would be a storm. One that finds the connection lost or
//! slow leaves it for good. Callers that still wait on the old connection keep it until they are
//! done.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::builder::Settings;
use crate::connection::{ConnectError, Connection};

/// How long a connection that was passed on from may be used again: longer than an election, and
/// short enough that the machine behind it is most likely still there.
const PASSED_KEPT: Duration = Duration::from_secs(5);

pub(super) struct Lane {
    state: Mutex<State>,
    /// Held while dialling, so that one caller dials and the others wait for the result.
    dialling: tokio::sync::Mutex<()>,
}

struct State {
    /// One place per endpoint.
    places: Vec<Option<Place>>,
    endpoint: usize,
}

struct Place {
    connection: Connection,
    passed_at: Option<Instant>,
}

impl State {
    fn advance(&mut self) {
        self.endpoint = (self.endpoint + 1) % self.places.len();
    }

    /// The place in use, if it holds this connection.
    fn in_use(&mut self, connection: &Connection) -> Option<&mut Option<Place>> {
        let place = &mut self.places[self.endpoint];
        place
            .as_ref()
            .is_some_and(|place| place.connection.is_same(connection))
            .then_some(place)
    }

    /// The connection in use, unless it has ended or rested for too long.
    fn current(&mut self) -> Option<Connection> {
        let place = self.places[self.endpoint].as_mut()?;
        let rested = place
            .passed_at
            .take()
            .map_or(Duration::ZERO, |at| at.elapsed());
        if rested > PASSED_KEPT || place.connection.closed().is_some() {
            self.places[self.endpoint] = None;
            return None;
        }
        Some(place.connection.clone())
    }
}

impl Lane {
    /// A lane over `endpoints` endpoints, at least one, that begins with `first`.
    pub(super) fn new(endpoints: usize, first: usize) -> Self {
        Self {
            state: Mutex::new(State {
                places: (0..endpoints).map(|_| None).collect(),
                endpoint: first,
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
        if let Some(connection) = self.lock().current() {
            return Ok(connection);
        }
        let _dialling = timeout_at(deadline, self.dialling.lock())
            .await
            .map_err(|_| None)?;
        let endpoint = {
            let mut state = self.lock();
            if let Some(connection) = state.current() {
                return Ok(connection);
            }
            state.endpoint
        };
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
                state.places[endpoint] = Some(Place {
                    connection: connection.clone(),
                    passed_at: None,
                });
                Ok(connection)
            }
            Err(error) => {
                if state.endpoint == endpoint {
                    state.advance();
                }
                Err(Some(error))
            }
        }
    }

    /// The node refused: moves on to the next endpoint, if this connection is still in use.
    pub(super) fn pass(&self, connection: &Connection) {
        let mut state = self.lock();
        if let Some(Some(place)) = state.in_use(connection) {
            place.passed_at = Some(Instant::now());
            state.advance();
        }
    }

    /// The connection is lost or slow: drops it, and moves on if it is still in use.
    pub(super) fn leave(&self, connection: &Connection) {
        let mut state = self.lock();
        if let Some(place) = state.in_use(connection) {
            *place = None;
            state.advance();
            return;
        }
        for place in &mut state.places {
            if place
                .as_ref()
                .is_some_and(|place| place.connection.is_same(connection))
            {
                *place = None;
            }
        }
    }
}
