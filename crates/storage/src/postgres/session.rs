//! A pooled connection while one operation uses it.

use std::ops::Deref;
use std::sync::Arc;

use deadpool_postgres::{ClientWrapper, Object};
use tokio::sync::OwnedSemaphorePermit;

use crate::error::{self, Failure, Result};
use crate::statement_log::StatementLog;
use crate::tx::Tx;

/// Whatever the server's default is.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

/// A connection that reads, statement by statement: one of the pool's, or a shared one.
pub(crate) struct Reading<C> {
    client: C,
    log: Option<Arc<StatementLog>>,
}

impl<C: Deref<Target = ClientWrapper>> Reading<C> {
    pub(super) fn new(client: C, log: Option<Arc<StatementLog>>) -> Self {
        Self { client, log }
    }

    pub(crate) fn tx(&self) -> Tx<'_> {
        Tx::postgres(&self.client, self.log.as_deref())
    }
}

impl Reading<Object> {
    /// Closes the connection, which somebody else may not use any more.
    pub(crate) fn discard(self) {
        drop(Object::take(self.client));
    }
}

impl Reading<Arc<ClientWrapper>> {
    pub(super) fn client(&self) -> &Arc<ClientWrapper> {
        &self.client
    }
}

/// A connection that is in the midst of something, such as a transaction. Dropped, as when the operation is
/// cancelled or panics, it is closed, and PostgreSQL rolls back.
pub(crate) struct Held(Option<Object>);

impl Held {
    pub(crate) fn new(client: Object) -> Self {
        Self(Some(client))
    }

    /// Somebody else may use the connection.
    pub(super) fn release(mut self) {
        drop(self.0.take());
    }
}

impl Deref for Held {
    type Target = Object;

    fn deref(&self) -> &Object {
        self.0.as_ref().expect("there until it is released")
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        drop(self.0.take().map(Object::take));
    }
}

/// A connection within a transaction.
pub(crate) struct Writing {
    client: Held,
    log: Option<Arc<StatementLog>>,
    /// Given back after the connection.
    _turn: OwnedSemaphorePermit,
}

impl Writing {
    pub(super) async fn begin(
        client: Object,
        turn: OwnedSemaphorePermit,
        log: Option<Arc<StatementLog>>,
    ) -> Result<Self> {
        let session = Self { client: Held::new(client), log, _turn: turn };
        super::in_time(async { Ok(session.client.batch_execute(BEGIN).await?) }).await?;
        Ok(session)
    }

    pub(crate) fn tx(&self) -> Tx<'_> {
        Tx::postgres(&self.client, self.log.as_deref())
    }

    /// Commits what succeeded, rolls back what did not.
    pub(crate) async fn finish<T, E: Failure>(self, result: Result<T, E>) -> Result<T, E> {
        if error::is_unavailable(&result) {
            // Who doesn't answer isn't asked to roll back: that is done when the connection is gone.
            return result;
        }
        let end = if result.is_ok() { "COMMIT" } else { "ROLLBACK" };
        let ended = super::in_time(async { Ok(self.client.batch_execute(end).await?) });
        match ended.await {
            Ok(()) => {
                self.client.release();
                result
            }
            Err(error) => Err(result.err().unwrap_or_else(|| error.into())),
        }
    }
}
