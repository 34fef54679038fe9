//! The transactions that closures run in: the few calls that both engines support alike. Those of
//! writes are in [`crate::engine::write_transaction`].
//!
//! Statements have numbered parameters (`?1`), which SQLite binds by number; for PostgreSQL they
//! become `$1`. Calls take `&self`, so that reads can be joined. On PostgreSQL, joined reads share
//! one round trip. On SQLite, each completes at its first poll.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use deadpool_postgres::ClientWrapper;
use futures_util::{TryStreamExt, pin_mut};
use parking_lot::Mutex;
use tokio_postgres::types::ToSql;

use crate::engine::error::{Error, Result};
use crate::engine::full_text::FullTextEngine;
use crate::engine::postgres::timeouts::within_timeout;
use crate::engine::row::Row;
use crate::engine::statement_log::StatementLog;
use crate::engine::value::Value;

/// A function that reads a row, and breaks if no further one is needed.
type OnRow<'f> = dyn FnMut(&Row<'_>) -> Result<ControlFlow<()>> + Send + 'f;

/// A read transaction.
#[derive(Debug)]
pub struct Tx<'a> {
    pub(super) engine: TransactionEngine<'a>,
    pub(super) log: Option<&'a StatementLog>,
    /// True if rows of an abandoned result are still to arrive.
    has_rest: AtomicBool,
    /// True if a statement failed on PostgreSQL, which then commits nothing of the transaction.
    has_failed: AtomicBool,
}

#[derive(Debug)]
pub(super) enum TransactionEngine<'a> {
    /// A lock that is never contended; it lets joined calls share the transaction.
    Sqlite(Mutex<&'a mut rusqlite::Connection>),
    Postgres(&'a ClientWrapper),
}

impl<'a> Tx<'a> {
    pub(crate) fn sqlite(
        connection: &'a mut rusqlite::Connection,
        log: Option<&'a StatementLog>,
    ) -> Self {
        let engine = TransactionEngine::Sqlite(Mutex::new(connection));
        Self::new(engine, log)
    }

    pub(crate) fn postgres(client: &'a ClientWrapper, log: Option<&'a StatementLog>) -> Self {
        Self::new(TransactionEngine::Postgres(client), log)
    }

    fn new(engine: TransactionEngine<'a>, log: Option<&'a StatementLog>) -> Self {
        let (has_rest, has_failed) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { engine, log, has_rest, has_failed }
    }

    /// Returns the server's response within its timeout, and notes a failure.
    pub(super) async fn response<T>(&self, response: impl Future<Output = Result<T>>) -> Result<T> {
        let response = within_timeout(response).await;
        if response.is_err() {
            self.has_failed.store(true, Ordering::Relaxed);
        }
        response
    }

    /// Returns true if a statement has failed, so that the transaction can't be committed.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// Returns true if the next user of the connection would wait for rows of an abandoned result.
    pub(crate) fn has_unread_rows(&self) -> bool {
        self.has_rest.load(Ordering::Relaxed)
    }

    /// Runs `read` on each row of the result, and returns the values in order.
    pub async fn query<T: Send>(
        &self,
        sql: &str,
        params: &[Value<'_>],
        mut read: impl FnMut(&Row<'_>) -> Result<T> + Send,
    ) -> Result<Vec<T>> {
        let mut items = Vec::new();
        let mut on_row = |row: &Row<'_>| {
            items.push(read(row)?);
            Ok(ControlFlow::Continue(()))
        };
        self.for_each_row(sql, params, &mut on_row).await?;
        Ok(items)
    }

    /// Like [`Tx::query`], but stops after the first value for which `is_enough` is true. Also
    /// returns true if more rows follow.
    pub(crate) async fn query_until<T: Send>(
        &self,
        sql: &str,
        params: &[Value<'_>],
        mut read: impl FnMut(&Row<'_>) -> Result<T> + Send,
        mut is_enough: impl FnMut(&T) -> bool + Send,
    ) -> Result<(Vec<T>, bool)> {
        let mut items = Vec::new();
        let mut on_row = |row: &Row<'_>| {
            let item = read(row)?;
            let enough = is_enough(&item);
            items.push(item);
            Ok(if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        };
        let has_more = self.for_each_row(sql, params, &mut on_row).await?;
        Ok((items, has_more))
    }

    /// Runs `on_row` on each row of the result until it breaks. Returns true if more rows follow.
    ///
    /// The types of the caller are erased, so that this is compiled once.
    async fn for_each_row(
        &self,
        sql: &str,
        params: &[Value<'_>],
        on_row: &mut OnRow<'_>,
    ) -> Result<bool> {
        self.record(sql);
        let mut is_over = false;
        match &self.engine {
            TransactionEngine::Sqlite(connection) => {
                let connection = connection.lock();
                let mut statement = connection.prepare_cached(sql)?;
                bind(&mut statement, params)?;
                let mut rows = statement.raw_query();
                while let Some(row) = rows.next()? {
                    if is_over {
                        return Ok(true);
                    }
                    is_over = on_row(&Row::sqlite(row))?.is_break();
                }
                Ok(false)
            }
            TransactionEngine::Postgres(client) => {
                // Boxed, as each transaction has this future within its own, on SQLite, too.
                let response = Box::pin(async {
                    let statement = client.prepare_cached(&for_postgres(sql)).await?;
                    let rows = client.query_raw(&statement, as_postgres(params)).await?;
                    pin_mut!(rows);
                    while let Some(row) = rows.try_next().await? {
                        if is_over {
                            self.has_rest.store(true, Ordering::Relaxed);
                            return Ok(true);
                        }
                        let step = on_row(&Row::postgres(&row));
                        let step =
                            step.inspect_err(|_| self.has_rest.store(true, Ordering::Relaxed))?;
                        is_over = step.is_break();
                    }
                    Ok(false)
                });
                self.response(response).await
            }
        }
    }

    /// Runs `read` on the first row, if there is one, and returns the value.
    pub async fn find<T: Send>(
        &self,
        sql: &str,
        params: &[Value<'_>],
        mut read: impl FnMut(&Row<'_>) -> Result<T> + Send,
    ) -> Result<Option<T>> {
        let mut first = None;
        let mut on_row = |row: &Row<'_>| {
            if first.is_none() {
                first = Some(read(row)?);
            }
            Ok(ControlFlow::Continue(()))
        };
        self.for_each_row(sql, params, &mut on_row).await?;
        Ok(first)
    }

    /// Runs `read` on the first row of a statement that always returns one.
    pub async fn get<T: Send>(
        &self,
        sql: &str,
        params: &[Value<'_>],
        read: impl FnMut(&Row<'_>) -> Result<T> + Send,
    ) -> Result<T> {
        self.find(sql, params, read).await?.ok_or_else(|| Error::corrupt("a row is missing"))
    }

    /// Prepares a statement on the PostgreSQL server in advance. A later run is then sent at once,
    /// and joined calls are pipelined behind it.
    pub(crate) async fn prepare(&self, sql: &str) -> Result<()> {
        let TransactionEngine::Postgres(client) = &self.engine else { return Ok(()) };
        self.response(async { Ok(client.prepare_cached(&for_postgres(sql)).await.map(drop)?) })
            .await
    }

    /// Returns true if the statement returns a row.
    pub async fn exists(&self, sql: &str, params: &[Value<'_>]) -> Result<bool> {
        Ok(self.find(sql, params, |_| Ok(())).await?.is_some())
    }

    pub(super) fn record(&self, sql: &str) {
        if let Some(log) = self.log {
            log.record(sql);
        }
    }

    /// Returns true if other transactions may write at the same time.
    pub(crate) fn has_other_writers(&self) -> bool {
        matches!(self.engine, TransactionEngine::Postgres(_))
    }

    /// Returns the engine of full-text searches.
    pub fn full_text_engine(&self) -> FullTextEngine {
        match self.engine {
            TransactionEngine::Sqlite(_) => FullTextEngine::Fts5,
            TransactionEngine::Postgres(_) => FullTextEngine::Tsvector,
        }
    }

    /// Returns the suffix of a SELECT that locks its rows until the transaction ends. On SQLite it
    /// is empty: there is one writer, so no lock is needed.
    pub(crate) fn for_update(&self) -> &'static str {
        match self.engine {
            TransactionEngine::Sqlite(_) => "",
            TransactionEngine::Postgres(_) => " FOR UPDATE",
        }
    }

    /// Returns the suffix of a SELECT that locks its rows, and skips those that other transactions
    /// have locked.
    pub(crate) fn for_update_skip_locked(&self) -> &'static str {
        match self.engine {
            TransactionEngine::Sqlite(_) => "",
            TransactionEngine::Postgres(_) => " FOR UPDATE SKIP LOCKED",
        }
    }

    /// Returns the suffix of a SELECT that locks its rows, but still allows other transactions to
    /// insert rows that refer to them.
    pub(crate) fn for_no_key_update(&self) -> &'static str {
        match self.engine {
            TransactionEngine::Sqlite(_) => "",
            TransactionEngine::Postgres(_) => " FOR NO KEY UPDATE",
        }
    }

    /// Returns the suffix of a SELECT that prevents the deletion of its rows until the transaction
    /// ends.
    pub(crate) fn for_key_share(&self) -> &'static str {
        match self.engine {
            TransactionEngine::Sqlite(_) => "",
            TransactionEngine::Postgres(_) => " FOR KEY SHARE",
        }
    }

    /// Like [`Tx::for_key_share`], but skips rows that other transactions have locked.
    pub(crate) fn for_key_share_skip_locked(&self) -> &'static str {
        match self.engine {
            TransactionEngine::Sqlite(_) => "",
            TransactionEngine::Postgres(_) => " FOR KEY SHARE SKIP LOCKED",
        }
    }
}

pub(super) fn bind(
    statement: &mut rusqlite::CachedStatement<'_>,
    params: &[Value<'_>],
) -> Result<()> {
    for (index, value) in params.iter().enumerate() {
        statement.raw_bind_parameter(index + 1, value)?;
    }
    Ok(())
}

pub(super) fn as_postgres<'p>(
    params: &'p [Value<'p>],
) -> impl ExactSizeIterator<Item = &'p (dyn ToSql + Sync)> + Send {
    params.iter().map(|value| value as &(dyn ToSql + Sync))
}

/// Converts parameters to PostgreSQL's form. No statement has a question mark elsewhere.
pub(super) fn for_postgres(sql: &str) -> String {
    sql.replace('?', "$")
}
