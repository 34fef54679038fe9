//! Runs a transaction's closure to its end in one poll.
//!
//! On SQLite every call of a transaction completes at its first poll. So a closure that awaits
//! nothing else completes as well; any other closure is rejected.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use crate::engine::error::{Error, Failure, Result};

/// Returns the output of `future`, which must be ready at its first poll.
pub(crate) fn finish_at_once<T, E: Failure>(
    name: &'static str,
    future: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => Err(Error::AwaitedElsewhere(name).into()),
    }
}
