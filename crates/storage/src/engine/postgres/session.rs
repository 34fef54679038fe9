//! A pooled connection while one operation uses it.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{ClientWrapper, Object};
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::timeouts::within_timeout;
use crate::engine::error::{self, Failure, Result};
use crate::engine::statement_log::StatementLog;
use crate::engine::transaction::Tx;

/// How long may take what nobody waits for any more.
const REST_TIME_MAX: Duration = Duration::from_secs(1);

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

impl Reading<Pooled> {
    /// Somebody else may use the connection.
    pub(crate) fn release(mut self) {
        drop(self.client.0.take());
    }

    /// Closes the connection, which somebody else may not use any more.
    pub(crate) fn discard(mut self) {
        drop(self.client.0.take().map(Object::take));
    }
}

impl Reading<Arc<ClientWrapper>> {
    pub(super) fn client(&self) -> &Arc<ClientWrapper> {
        &self.client
    }
}

/// A connection of the pool. Dropped, as when its operation is cancelled, it is given back once all that was asked is answered,
/// so that nobody else waits for that; what takes long is ended, and the connection closed.
pub(crate) struct Pooled(Option<Object>);

impl Pooled {
    pub(super) fn new(client: Object) -> Self {
        Self(Some(client))
    }
}

impl Deref for Pooled {
    type Target = ClientWrapper;

    fn deref(&self) -> &ClientWrapper {
        self.0.as_ref().expect("there until it is released")
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        let Some(client) = self.0.take() else { return };
        let Ok(runtime) = Handle::try_current() else {
            drop(Object::take(client));
            return;
        };
        runtime.spawn(async move {
            let last = timeout(REST_TIME_MAX, client.simple_query("")).await;
            if !matches!(last, Ok(Ok(_))) {
                // Or the server goes on with it, beside as many connections as the pool has. This one could be told too late to
                // end something else: it is closed.
                let token = client.cancel_token();
                let cancel = token.cancel_query(MakeRustlsConnect::new(galley_tls::client()));
                if !matches!(timeout(REST_TIME_MAX, cancel).await, Ok(Ok(()))) {
                    tracing::debug!("what was given up could not be ended");
                }
                drop(Object::take(client));
            }
        });
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
        within_timeout(async { Ok(session.client.batch_execute(BEGIN).await?) }).await?;
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
        let ended = within_timeout(async { Ok(self.client.batch_execute(end).await?) });
        match ended.await {
            Ok(()) => {
                self.client.release();
                result
            }
            Err(error) => Err(result.err().unwrap_or_else(|| error.into())),
        }
    }
}
