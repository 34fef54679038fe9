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
use crate::engine::error::{Error, Result};
use crate::engine::statement_log::StatementLog;
use crate::engine::transaction::Tx;

/// The timeout of draining an abandoned statement, and of cancelling it.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Begins a transaction, with the same isolation level whatever the server's default.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

/// Begins the transaction of a group. It waits only briefly for a lock, as all its writes wait.
const BEGIN_GROUP: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '1s'";

/// A connection for reads, each statement by itself: one of the pool, or the shared one.
pub(crate) struct ReadSession<C> {
    client: C,
    log: Option<Arc<StatementLog>>,
}

impl<C: Deref<Target = ClientWrapper>> ReadSession<C> {
    pub(super) fn new(client: C, log: Option<Arc<StatementLog>>) -> Self {
        Self { client, log }
    }

    pub(crate) fn tx(&self) -> Tx<'_> {
        Tx::postgres(&self.client, self.log.as_deref())
    }
}

impl ReadSession<PooledConnection> {
    /// Releases the connection to the pool.
    pub(crate) fn release(mut self) {
        drop(self.client.0.take());
    }

    /// Closes the connection, which must not be reused.
    pub(crate) fn discard(mut self) {
        drop(self.client.0.take().map(Object::take));
    }

    /// Releases the connection after a read, or closes it: the server may still be sending the rest
    /// of a result, or a response.
    pub(crate) fn end(self, has_unread_rows: bool, error: Option<&Error>) {
        if has_unread_rows || error.is_some_and(Error::is_unavailable) {
            self.discard();
        } else {
            self.release();
        }
    }
}

impl ReadSession<Arc<ClientWrapper>> {
    pub(super) fn client(&self) -> &Arc<ClientWrapper> {
        &self.client
    }
}

/// A connection of the pool. If it is dropped, as on cancellation, it is released once all
/// responses have arrived, so that its next user need not wait for them. Statements that take long
/// are cancelled, and the connection is closed.
pub(crate) struct PooledConnection(Option<Object>);

impl PooledConnection {
    pub(super) fn new(client: Object) -> Self {
        Self(Some(client))
    }
}

impl Deref for PooledConnection {
    type Target = ClientWrapper;

    fn deref(&self) -> &ClientWrapper {
        self.0.as_ref().expect("there until it is released")
    }
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        let Some(client) = self.0.take() else { return };
        let Ok(runtime) = Handle::try_current() else {
            drop(Object::take(client));
            return;
        };
        runtime.spawn(async move {
            let last = timeout(DRAIN_TIMEOUT, client.simple_query("")).await;
            if !matches!(last, Ok(Ok(_))) {
                // Without cancellation, the server would keep running the statement in addition to
                // those of the pool. A late cancel request could end another statement, so the
                // connection is closed.
                let token = client.cancel_token();
                let cancel = token.cancel_query(MakeRustlsConnect::new(galley_tls::client()));
                if !matches!(timeout(DRAIN_TIMEOUT, cancel).await, Ok(Ok(()))) {
                    tracing::debug!("an abandoned statement could not be cancelled");
                }
                drop(Object::take(client));
            }
        });
    }
}

/// A connection in a transaction, or a similar state. If it is dropped, as when the operation is
/// cancelled or panics, it is closed, and PostgreSQL rolls back.
#[derive(Debug)]
pub(crate) struct TransactionConnection(Option<Object>);

impl TransactionConnection {
    pub(crate) fn new(client: Object) -> Self {
        Self(Some(client))
    }

    /// Releases the connection to the pool.
    pub(super) fn release(mut self) {
        drop(self.0.take());
    }
}

impl Deref for TransactionConnection {
    type Target = Object;

    fn deref(&self) -> &Object {
        self.0.as_ref().expect("there until it is released")
    }
}

impl Drop for TransactionConnection {
    fn drop(&mut self) {
        drop(self.0.take().map(Object::take));
    }
}

/// The kinds of write transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteKind {
    /// A write that may be rejected if too many others wait.
    Foreground,
    /// A write that waits for a permit in any case: of the background, or one that was admitted.
    Admitted,
    /// A group of writes, which were admitted.
    Group,
}

/// A connection within a transaction.
#[derive(Debug)]
pub(crate) struct WriteSession {
    client: TransactionConnection,
    log: Option<Arc<StatementLog>>,
    /// Released after the connection.
    _permit: OwnedSemaphorePermit,
}

impl WriteSession {
    pub(super) async fn begin(
        client: Object,
        permit: OwnedSemaphorePermit,
        log: Option<Arc<StatementLog>>,
        kind: WriteKind,
    ) -> Result<Self> {
        let session = Self { client: TransactionConnection::new(client), log, _permit: permit };
        let begin = if kind == WriteKind::Group { BEGIN_GROUP } else { BEGIN };
        within_timeout(async { Ok(session.client.batch_execute(begin).await?) }).await?;
        Ok(session)
    }

    pub(crate) fn tx(&self) -> Tx<'_> {
        Tx::postgres(&self.client, self.log.as_deref())
    }

    /// Commits on success, and rolls back on failure.
    pub(crate) async fn finish(self, result: Result<()>) -> Result<()> {
        match result {
            Ok(()) => self.end("COMMIT").await,
            Err(error) => {
                self.roll_back(Some(&error)).await;
                Err(error)
            }
        }
    }

    /// Rolls back because of a failure, with the store's error if that is the cause.
    pub(crate) async fn roll_back(self, cause: Option<&Error>) {
        // A server that doesn't respond receives no rollback; it rolls back when the connection
        // ends, as after a rollback that fails.
        if !cause.is_some_and(Error::is_unavailable) {
            drop(self.end("ROLLBACK").await);
        }
    }

    async fn end(self, statement: &str) -> Result<()> {
        within_timeout(async { Ok(self.client.batch_execute(statement).await?) }).await?;
        self.client.release();
        Ok(())
    }
}
