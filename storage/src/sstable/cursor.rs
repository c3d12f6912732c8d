//! Walks a table in either direction and stops once per user key, at its newest version that the
//! view may see: the same as the cursor of a memtable, except that it may fail.

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;

use super::change;
use super::entry_cursor::EntryCursor;
use super::error::SstableError;
use super::reader::SstableReader;
use crate::batch::Change;
use crate::internal_key::Trailer;
use crate::read_view::Direction;
use crate::sequence_number::SequenceNumber;

/// Versions of one key that are stepped over one by one before a search leaps over the rest.
const VERSION_STEPS_MAX: usize = 8;

/// An owned position between two user keys of a table.
pub(crate) struct SstableCursor {
    entries: EntryCursor,
    sequence: SequenceNumber,
    direction: Direction,
    bounds: (Bound<Bytes>, Bound<Bytes>),
    stop: Stop,
}

/// The next stop, as far as it is known.
enum Stop {
    /// Not looked for yet; `entries` was never placed.
    Unplaced,
    /// Not looked for yet; `entries` is at the first version behind the last stop's key.
    Unknown,
    Known(Bytes, Change),
    None,
    /// The scan cannot go on.
    Failed(SstableError),
}

impl SstableCursor {
    /// Stands before the first stop within `bounds` as seen at `sequence`, in the order of
    /// `direction`.
    pub(crate) fn new(
        reader: Arc<SstableReader>,
        sequence: SequenceNumber,
        bounds: (Bound<Bytes>, Bound<Bytes>),
        direction: Direction,
    ) -> Self {
        Self {
            entries: EntryCursor::new(reader),
            sequence,
            direction,
            bounds,
            stop: Stop::Unplaced,
        }
    }

    /// The key of the next stop. May read; an error ends the scan and is repeated by every later
    /// call.
    pub(crate) fn peek(&mut self) -> Result<Option<&Bytes>, SstableError> {
        if matches!(self.stop, Stop::Unplaced | Stop::Unknown) {
            self.stop = match self.find() {
                Ok(Some((key, change))) => Stop::Known(key, change),
                Ok(None) => Stop::None,
                Err(error) => Stop::Failed(error),
            };
        }
        match &self.stop {
            Stop::Known(key, _) => Ok(Some(key)),
            Stop::Failed(error) => Err(error.clone()),
            Stop::None | Stop::Unplaced | Stop::Unknown => Ok(None),
        }
    }

    /// Moves over the next stop. Tombstones are stops, as they hide what older sources hold.
    pub(crate) fn next(&mut self) -> Result<Option<(Bytes, Change)>, SstableError> {
        self.peek()?;
        match std::mem::replace(&mut self.stop, Stop::None) {
            Stop::Known(key, change) => {
                self.stop = Stop::Unknown;
                Ok(Some((key, change)))
            }
            _ => Ok(None),
        }
    }

    fn find(&mut self) -> Result<Option<(Bytes, Change)>, SstableError> {
        let unplaced = matches!(self.stop, Stop::Unplaced);
        match self.direction {
            Direction::Forward => {
                if unplaced {
                    self.place_forward()?;
                }
                self.find_forward()
            }
            Direction::Reverse => {
                if unplaced {
                    self.place_reverse()?;
                }
                self.find_reverse()
            }
        }
    }

    fn place_forward(&mut self) -> Result<(), SstableError> {
        match &self.bounds.0 {
            Bound::Included(key) => self.entries.seek(key, Trailer::BEFORE_ALL),
            Bound::Excluded(key) => self.entries.seek(key, Trailer::AFTER_ALL),
            Bound::Unbounded => self.entries.seek_first(),
        }
    }

    fn place_reverse(&mut self) -> Result<(), SstableError> {
        match &self.bounds.1 {
            Bound::Included(key) => self.entries.seek_before(key, Trailer::AFTER_ALL),
            Bound::Excluded(key) => self.entries.seek_before(key, Trailer::BEFORE_ALL),
            Bound::Unbounded => self.entries.seek_last(),
        }
    }

    /// From the newest version of a key on.
    fn find_forward(&mut self) -> Result<Option<(Bytes, Change)>, SstableError> {
        loop {
            let Some((key, _)) = self.entries.entry() else {
                return Ok(None);
            };
            let in_bounds = match &self.bounds.1 {
                Bound::Included(end) => key <= end.as_ref(),
                Bound::Excluded(end) => key < end.as_ref(),
                Bound::Unbounded => true,
            };
            if !in_bounds {
                return Ok(None);
            }
            let key = Bytes::copy_from_slice(key);
            self.skip_forward(&key, Trailer::newest_at(self.sequence))?;
            let found = self.change_of(&key);
            self.skip_forward(&key, Trailer::AFTER_ALL)?;
            if let Some(change) = found {
                return Ok(Some((key, change)));
            }
        }
    }

    /// Goes to the first version at or after (`key`, `trailer`), from a version of `key` before.
    fn skip_forward(&mut self, key: &[u8], trailer: Trailer) -> Result<(), SstableError> {
        for _ in 0..VERSION_STEPS_MAX {
            match self.entries.entry() {
                // A greater trailer is a newer version.
                Some((other, found)) if other == key && found > trailer => self.entries.next()?,
                _ => return Ok(()),
            }
        }
        self.entries.seek(key, trailer)
    }

    /// From the oldest version of a key on.
    fn find_reverse(&mut self) -> Result<Option<(Bytes, Change)>, SstableError> {
        loop {
            let Some((key, _)) = self.entries.entry() else {
                return Ok(None);
            };
            let in_bounds = match &self.bounds.0 {
                Bound::Included(start) => key >= start.as_ref(),
                Bound::Excluded(start) => key > start.as_ref(),
                Bound::Unbounded => true,
            };
            if !in_bounds {
                return Ok(None);
            }
            let key = Bytes::copy_from_slice(key);
            if let Some(change) = self.newest_reverse(&key)? {
                return Ok(Some((key, change)));
            }
        }
    }

    /// The newest visible change of `key`, from its oldest version on; leaves `entries` at the
    /// last version of the key before.
    fn newest_reverse(&mut self, key: &[u8]) -> Result<Option<Change>, SstableError> {
        let mut newest = None;
        for _ in 0..VERSION_STEPS_MAX {
            match self.entries.entry() {
                Some((other, _)) if other != key => return Ok(newest),
                None => return Ok(newest),
                Some((_, trailer)) if trailer.sequence() <= self.sequence => {
                    newest = self.change_of(key);
                }
                Some(_) => {}
            }
            self.entries.prev()?;
        }
        self.entries.seek(key, Trailer::newest_at(self.sequence))?;
        let newest = self.change_of(key);
        self.entries.seek_before(key, Trailer::BEFORE_ALL)?;
        Ok(newest)
    }

    /// The change where `entries` is, if that is a version of `key`.
    fn change_of(&self, key: &[u8]) -> Option<Change> {
        let (found, trailer) = self.entries.entry()?;
        if found != key {
            return None;
        }
        self.entries
            .value()
            .map(|value| change(trailer.kind(), value))
    }
}
