//! Running a transaction's closure to its end at once.
//!
//! On SQLite every call of a transaction is done at its first poll, so that a closure which awaits
//! nothing else is too; one that does is refused.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use crate::engine::error::{Error, Failure, Result};

/// The outcome of `future`, which must be ready at its first poll.
pub(crate) fn finish_at_once<T, E: Failure>(
    name: &'static str,
    future: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => Err(Error::AwaitedElsewhere(name).into()),
    }
}
