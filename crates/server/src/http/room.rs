//! Room for the bodies of requests, while they come in and are worked on, and for those of answers, until they are sent: all
//! of them together have a bound.

use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Bytes;
use galley_storage::Error as StorageError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::http::overload::UnderWay;

/// What a body may have without being counted, as most do.
const UNCOUNTED: usize = 16 * 1024;

/// A unit of room, in bytes.
const UNIT: usize = 1_024;

/// The room that there is.
#[derive(Debug)]
pub(super) struct Room(Arc<Semaphore>);

impl Room {
    /// For so many bytes.
    pub(super) fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes.div_ceil(UNIT).min(Semaphore::MAX_PERMITS))))
    }

    /// Takes room for so many bytes, or says that there is none.
    pub(super) fn take(&self, bytes: usize) -> Result<Space, StorageError> {
        let Some(counted) = bytes.checked_sub(UNCOUNTED).filter(|&counted| counted > 0) else {
            return Ok(Space::SMALL);
        };
        let units = u32::try_from(counted.div_ceil(UNIT)).map_err(|_| StorageError::Overloaded)?;
        let permit = Arc::clone(&self.0).try_acquire_many_owned(units);
        permit.map(|permit| Space(Some(permit))).map_err(|_| StorageError::Overloaded)
    }

    /// The space, for so many bytes at the least.
    pub(super) fn widened(&self, mut space: Space, bytes: usize) -> Result<Space, StorageError> {
        let has = space.0.as_ref().map_or(0, |permit| permit.num_permits() * UNIT);
        let more = self.take(bytes.saturating_sub(has))?;
        match (&mut space.0, more.0) {
            (Some(permit), Some(more)) => permit.merge(more),
            (none @ None, more) => *none = more,
            (Some(_), None) => {}
        }
        Ok(space)
    }

    /// Has `place` be for so many bytes, or says that there is no room for them.
    pub(super) fn widen(&self, place: &Place, bytes: usize) -> Result<(), StorageError> {
        let Some(counted) = bytes.checked_sub(UNCOUNTED).filter(|&counted| counted > 0) else {
            return Ok(());
        };
        let mut held = place.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        let has = held.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let more = counted.div_ceil(UNIT).saturating_sub(has);
        let more = u32::try_from(more).map_err(|_| StorageError::Overloaded)?;
        let room = Arc::clone(&self.0);
        let more = room.try_acquire_many_owned(more).map_err(|_| StorageError::Overloaded)?;
        match &mut *held {
            Some(held) => held.merge(more),
            None => *held = Some(more),
        }
        Ok(())
    }
}

/// What an answer takes of the room.
#[derive(Debug)]
pub(crate) struct Space(Option<OwnedSemaphorePermit>);

/// Bytes that are written, up to a number of them.
pub(super) struct Bounded {
    pub(super) bytes: Vec<u8>,
    pub(super) max: usize,
}

impl std::io::Write for Bounded {
    fn write(&mut self, more: &[u8]) -> std::io::Result<usize> {
        if self.bytes.len() + more.len() > self.max {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Bytes in their space.
struct Spaced {
    bytes: Vec<u8>,
    _space: Space,
}

impl Space {
    /// Of an answer that says little.
    pub(crate) const SMALL: Self = Self(None);

    /// The bytes, which have the space until nobody needs them any more.
    pub(crate) fn hold(self, bytes: Vec<u8>) -> Bytes {
        if self.0.is_none() {
            return bytes.into();
        }
        Bytes::from_owner(Spaced { bytes, _space: self })
    }
}

impl AsRef<[u8]> for Spaced {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The place of a request and its body, until all clones are gone.
#[derive(Debug, Clone)]
pub(super) struct Place(Arc<(Mutex<Held>, UnderWay)>);

type Held = Option<OwnedSemaphorePermit>;

impl Place {
    /// Of a request without a body yet.
    pub(super) fn new(under_way: UnderWay) -> Self {
        Self(Arc::new((Mutex::default(), under_way)))
    }

    /// Works on the request.
    pub(super) async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        self.0.1.during(work).await
    }
}
