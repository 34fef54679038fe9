//! Operations whose result types are erased.
//!
//! Each operation of the service has types of its own, and there are some two hundred. The engines
//! run an operation as a closure that keeps its result, so that they are compiled once.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::engine::error::{Error, Failure, Result};
use crate::engine::poll_once::finish_at_once;
use crate::engine::transaction::Tx;
use crate::engine::write_transaction::WriteTx;

/// A read on SQLite, which keeps its result.
pub(crate) type ErasedRead<'f> = dyn FnMut(&Tx<'_>) + Send + 'f;

/// A write on SQLite, which keeps its result. It returns whether its changes stay.
pub(crate) type ErasedWrite = dyn FnMut(&WriteTx<'_>) -> Result<(), OperationFailure> + Send;

/// The failure of an operation.
#[derive(Debug, Clone)]
pub(crate) enum OperationFailure {
    /// The operation returned an error, which its caller has. If it is the store's, this is it.
    Returned(Option<Error>),
    /// The store failed before or after the operation.
    Failed(Error),
}

impl OperationFailure {
    /// Returns the store's error, if that is the cause.
    pub(crate) fn into_storage_error(self) -> Option<Error> {
        match self {
            Self::Returned(error) => error,
            Self::Failed(error) => Some(error),
        }
    }
}

/// The place of an operation's result. Clones share it.
#[derive(Debug)]
pub(crate) struct ResultSlot<T, E>(Arc<Mutex<Option<Result<T, E>>>>);

impl<T, E> Clone for ResultSlot<T, E> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T, E: Failure> ResultSlot<T, E> {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(None)))
    }

    fn set(&self, result: Result<T, E>) {
        *self.0.lock() = Some(result);
    }

    /// Takes the result of an operation that has run.
    pub(crate) fn take(&self) -> Result<T, E> {
        self.0.lock().take().unwrap_or_else(|| Err(Error::Panicked.into()))
    }

    /// Takes the result of a write that ended like this.
    pub(crate) fn take_after(&self, ended: Result<(), OperationFailure>) -> Result<T, E> {
        match ended {
            Ok(()) | Err(OperationFailure::Returned(_)) => self.take(),
            Err(OperationFailure::Failed(error)) => Err(error.into()),
        }
    }
}

/// Erases the types of a read.
pub(crate) fn erase_read<T, E, F>(
    name: &'static str,
    operation: F,
) -> (Box<ErasedRead<'static>>, ResultSlot<T, E>)
where
    T: Send + 'static,
    E: Failure,
    F: AsyncFn(&Tx<'_>) -> Result<T, E> + Send + 'static,
{
    let slot = ResultSlot::new();
    let result = slot.clone();
    let read = move |tx: &Tx<'_>| result.set(finish_at_once(name, operation(tx)));
    (Box::new(read), slot)
}

/// Erases the types of a write.
pub(crate) fn erase_write<T, E, F>(
    name: &'static str,
    operation: F,
) -> (Box<ErasedWrite>, ResultSlot<T, E>)
where
    T: Send + 'static,
    E: Failure,
    F: AsyncFn(&WriteTx<'_>) -> Result<T, E> + Send + 'static,
{
    let slot = ResultSlot::new();
    let result = slot.clone();
    let write = move |tx: &WriteTx<'_>| {
        let outcome = finish_at_once(name, operation(tx));
        let ended = match &outcome {
            Ok(_) => Ok(()),
            Err(error) => Err(OperationFailure::Returned(error.storage_error().cloned())),
        };
        result.set(outcome);
        ended
    };
    (Box::new(write), slot)
}
