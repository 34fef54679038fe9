//! A pooled connection while one operation uses it.

use std::sync::Arc;

use deadpool_postgres::Object;

use crate::error::{Failure, Result};
use crate::statement_log::StatementLog;
use crate::tx::Tx;

/// A connection that reads, statement by statement.
pub(crate) struct Reading {
    client: Object,
    log: Option<Arc<StatementLog>>,
}

impl Reading {
    pub(super) fn new(client: Object, log: Option<Arc<StatementLog>>) -> Self {
        Self { client, log }
    }

    pub(crate) fn tx(&self) -> Tx<'_> {
        Tx::postgres(&self.client, self.log.as_deref())
    }
}

/// A connection within a transaction. Dropped before its end, as when the operation is cancelled
/// or panics, the connection is closed and PostgreSQL rolls back.
pub(crate) struct Writing {
    /// Taken when the transaction has ended.
    client: Option<Object>,
    log: Option<Arc<StatementLog>>,
}

impl Writing {
    pub(super) async fn begin(client: Object, log: Option<Arc<StatementLog>>) -> Result<Self> {
        let session = Self { client: Some(client), log };
        session.client().batch_execute("BEGIN").await?;
        Ok(session)
    }

    pub(crate) fn tx(&self) -> Tx<'_> {
        Tx::postgres(self.client(), self.log.as_deref())
    }

    /// Commits what succeeded, rolls back what did not.
    pub(crate) async fn finish<T, E: Failure>(mut self, result: Result<T, E>) -> Result<T, E> {
        let end = if result.is_ok() { "COMMIT" } else { "ROLLBACK" };
        let ended = self.client().batch_execute(end).await;
        match ended {
            Ok(()) => {
                // Only now may somebody else use the connection.
                drop(self.client.take());
                result
            }
            Err(error) => Err(result.err().unwrap_or_else(|| crate::Error::from(error).into())),
        }
    }

    fn client(&self) -> &Object {
        self.client.as_ref().expect("there until the transaction has ended")
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            drop(Object::take(client));
        }
    }
}
