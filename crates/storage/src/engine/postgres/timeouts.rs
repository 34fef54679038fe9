//! Timeouts of the database server's responses.

use std::time::Duration;

use tokio::time::timeout;

use crate::engine::error::{Cause, Error, Result};

/// The timeout of a read, with all its statements.
pub(crate) const READ_TIMEOUT: Duration = Duration::from_secs(40);

/// The timeout of one statement or commit. It is longer than the server's own `statement_timeout`,
/// so that a commit that waits for a standby fails there first.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(35);

/// The timeout of a query for one row over the shared connection.
pub(crate) const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);

/// The error of a database server that sent no response in time.
#[derive(Debug, thiserror::Error)]
#[error("the database server did not respond in time")]
pub(crate) struct ResponseTimeout;

impl ResponseTimeout {
    /// Returns the store's error for it.
    pub(crate) fn error() -> Error {
        Error::Unavailable(Cause::new(Self))
    }
}

/// Returns the server's response, or fails after [`STATEMENT_TIMEOUT`]. The effect of the statement
/// is then unknown.
pub(crate) async fn within_timeout<T>(response: impl Future<Output = Result<T>>) -> Result<T> {
    timeout(STATEMENT_TIMEOUT, response).await.map_err(|_| ResponseTimeout::error())?
}
