//! The transactions that closures run in: the few calls that both engines support alike.
//!
//! Statements have numbered parameters (`?1`), which SQLite binds by number; for PostgreSQL they
//! become `$1`. Calls take `&self`, so that reads can be joined. On PostgreSQL, joined reads share
//! one round trip. On SQLite, each completes at its first poll.

use std::ops::{ControlFlow, Deref};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use deadpool_postgres::ClientWrapper;
use futures_util::future::try_join_all;
use futures_util::{TryFutureExt, TryStreamExt, pin_mut};
use galley_domain::WorkspaceId;
use galley_domain::audit::AuditEntry;
use parking_lot::Mutex;
use tokio_postgres::types::ToSql;

use crate::engine::change_tracking::{Affects, ChangeScope, Generation};
use crate::engine::error::{Error, Result};
use crate::engine::full_text::FullTextEngine;
use crate::engine::group_state::GroupState;
use crate::engine::new_event::AppendedEvent;
use crate::engine::postgres::connect::discard_plans;
use crate::engine::postgres::timeouts::within_timeout;
use crate::engine::row::Row;
use crate::engine::sql_list::insert_of_rows;
use crate::engine::statement_log::StatementLog;
use crate::engine::transaction_changes::TransactionChanges;
use crate::engine::value::{Value, params};
use crate::engine::write_pressure::TimeSlice;

/// The limit of rows that one INSERT has.
const ROWS_PER_INSERT: usize = 16;

/// The number of changes after which a transaction on PostgreSQL plans its statements again, and
/// again after twice as many. The writes of a group make fewer. Plans that were made for empty
/// tables may use an index that reads all rows of a workspace, also to check a foreign key.
const CHANGES_BEFORE_REPLANNING: u32 = 1_024;

/// A function that reads a row, and breaks if no further one is needed.
type OnRow<'f> = dyn FnMut(&Row<'_>) -> Result<ControlFlow<()>> + Send + 'f;

/// A read transaction.
#[derive(Debug)]
pub struct Tx<'a> {
    engine: TransactionEngine<'a>,
    log: Option<&'a StatementLog>,
    /// True if rows of an abandoned result are still to arrive.
    has_rest: AtomicBool,
    /// True if a statement failed on PostgreSQL, which then commits nothing of the transaction.
    has_failed: AtomicBool,
}

/// A read-write transaction.
#[derive(Debug)]
pub struct WriteTx<'a> {
    tx: Tx<'a>,
    /// The time slice of a background transaction.
    slice: Option<&'a TimeSlice>,
    changes: Mutex<TransactionChanges>,
    /// The number of statements that change rows.
    change_count: AtomicU32,
    /// The state that the writes of a group share, if the transaction is one of a group.
    group: Option<&'a GroupState>,
}

#[derive(Debug)]
enum TransactionEngine<'a> {
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
    async fn response<T>(&self, response: impl Future<Output = Result<T>>) -> Result<T> {
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
                let response = async {
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
                };
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

    fn record(&self, sql: &str) {
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

impl<'a> Deref for WriteTx<'a> {
    type Target = Tx<'a>;

    fn deref(&self) -> &Tx<'a> {
        &self.tx
    }
}

impl<'a> WriteTx<'a> {
    pub(crate) fn new(tx: Tx<'a>, slice: Option<&'a TimeSlice>) -> Self {
        Self { tx, slice, changes: Mutex::default(), change_count: AtomicU32::new(0), group: None }
    }

    /// Creates the view of one write on a transaction that a group of writes shares.
    pub(crate) fn of_group(tx: Tx<'a>, group: &'a GroupState) -> Self {
        Self { group: Some(group), ..Self::new(tx, None) }
    }

    /// Returns true if other writes share the transaction.
    pub fn is_shared(&self) -> bool {
        self.group.is_some()
    }

    /// Returns the state that the writes of its group share.
    pub(crate) fn group(&self) -> Option<&'a GroupState> {
        self.group
    }

    /// Fails in a group of writes. The write is then retried in a transaction of its own.
    pub(crate) fn leave_group(&self) -> Result<()> {
        if self.group.is_some() { Err(Error::Conflict) } else { Ok(()) }
    }

    /// Returns its changes, for the end of the transaction.
    pub(crate) fn into_changes(self) -> TransactionChanges {
        self.changes.into_inner()
    }

    /// Adds the changes of a write of the same transaction.
    pub(crate) fn add(&self, changes: TransactionChanges) {
        self.changes.lock().add(changes);
    }

    /// Appends events, to be inserted at the end of the transaction. Returns the approximate size
    /// of all that have not been inserted yet, in bytes.
    pub(crate) fn append_events(&self, events: impl Iterator<Item = AppendedEvent>) -> usize {
        self.changes.lock().append_events(events)
    }

    /// Takes the events that have not been inserted yet.
    pub(crate) fn take_appended_events(&self) -> Vec<AppendedEvent> {
        self.changes.lock().take_events()
    }

    /// Appends an entry of the audit log, to be inserted at the end of the transaction.
    pub(crate) fn append_audit_entry(&self, workspace: WorkspaceId, entry: AuditEntry) {
        self.changes.lock().append_audit_entry(workspace, entry);
    }

    /// Takes the entries of the audit log that have not been inserted yet.
    pub(crate) fn take_audit_entries(&self) -> Vec<(WorkspaceId, AuditEntry)> {
        self.changes.lock().take_audit_entries()
    }

    /// Returns the scope of its changes.
    pub(crate) fn change_scope(&self) -> ChangeScope {
        self.changes.lock().scope.clone()
    }

    /// Notes that the workspace has its next generation already.
    pub(crate) fn note_next_generation(&self, workspace: WorkspaceId) {
        self.changes.lock().next.insert(workspace);
    }

    /// Sets the next generation of the changed workspaces, by which other programs detect the
    /// changes. Must be called last.
    pub(crate) async fn change_generations(&self) -> Result<()> {
        const BOTH: &str = "generation = ?1, published_generation = ?1";
        let scope = self.change_scope();
        let number = Generation::next_number();
        if scope.affects_all_workspaces() {
            let sql = format!("UPDATE workspace_sequences SET {BOTH}");
            return self.execute(&sql, params![number], Affects::Nothing).await.map(drop);
        }
        let next = self.changes.lock().next.clone();
        let published = scope.published_workspaces();
        for workspace in scope.workspaces() {
            let columns = match (next.contains(&workspace), published.contains(&workspace)) {
                (true, false) => continue,
                (true, true) => "published_generation = ?1",
                (false, true) => BOTH,
                (false, false) => "generation = ?1",
            };
            let sql = format!("UPDATE workspace_sequences SET {columns} WHERE workspace_id = ?2");
            self.execute(&sql, params![number, workspace], Affects::Nothing).await?;
        }
        Ok(())
    }

    /// Returns true if this background transaction should yield, as it blocks other writers. A long
    /// task then continues in another transaction.
    pub fn should_yield(&self) -> bool {
        self.slice.is_some_and(TimeSlice::is_over)
    }

    /// Returns true if this background transaction should work in small steps, as the store is
    /// contended.
    pub fn is_contended(&self) -> bool {
        self.slice.is_some_and(TimeSlice::is_short)
    }

    /// Returns the number of foreground writes of this node that wait, or run beside this
    /// background transaction.
    pub(crate) fn waiting_writes(&self) -> usize {
        self.slice.map_or(0, TimeSlice::writes_under_way)
    }

    /// Notifies the subscribers of [`crate::Database::subscribe_to_commits`] once the transaction
    /// is committed.
    pub fn notify_on_commit(&self) {
        self.changes.lock().must_notify = true;
    }

    pub(crate) fn must_notify(&self) -> bool {
        self.changes.lock().must_notify
    }

    /// Runs a statement that changes rows, and returns their number. If there are any, the
    /// transaction affects the data that `affects` names.
    pub async fn execute(&self, sql: &str, params: &[Value<'_>], affects: Affects) -> Result<u64> {
        let count = self.run(sql, params, affects).await?;
        if count > 0 {
            self.changes.lock().record(affects);
        }
        Ok(count)
    }

    /// Runs a statement that changes rows, like [`WriteTx::execute`], without their number.
    pub async fn change(&self, sql: &str, params: &[Value<'_>], affects: Affects) -> Result<()> {
        self.execute(sql, params, affects).await.map(drop)
    }

    async fn run(&self, sql: &str, params: &[Value<'_>], affects: Affects) -> Result<u64> {
        self.record(sql);
        if let Some(log) = self.log {
            log.record_change(sql, params, affects);
        }
        match &self.engine {
            TransactionEngine::Sqlite(connection) => {
                let connection = connection.lock();
                let mut statement = connection.prepare_cached(sql)?;
                bind(&mut statement, params)?;
                Ok(statement.raw_execute()? as u64)
            }
            TransactionEngine::Postgres(client) => {
                let count = self.change_count.fetch_add(1, Ordering::Relaxed);
                let response = async {
                    if count >= CHANGES_BEFORE_REPLANNING && count.is_power_of_two() {
                        discard_plans(client).await?;
                    }
                    let statement = client.prepare_cached(&for_postgres(sql)).await?;
                    Ok(client.execute_raw(&statement, as_postgres(params)).await?)
                };
                self.response(response).await
            }
        }
    }

    /// Runs a statement once for each row of parameters, in one round trip if the engine allows
    /// that. Returns the number of changed rows for each.
    pub fn execute_each<'v, R: AsRef<[Value<'v>]> + Send + Sync>(
        &self,
        sql: &str,
        rows: impl IntoIterator<Item = R>,
        affects: Affects,
    ) -> impl Future<Output = Result<Vec<u64>>> + Send {
        let rows: Vec<R> = rows.into_iter().collect();
        async move {
            try_join_all(rows.iter().map(|row| self.execute(sql, row.as_ref(), affects))).await
        }
    }

    /// Inserts rows in one round trip, several rows per statement. `sql` is an INSERT of one row
    /// that ends with its values.
    pub async fn insert_each<'v, R: AsRef<[Value<'v>]> + Send + Sync>(
        &self,
        sql: &str,
        rows: impl IntoIterator<Item = R> + Send,
        affects: Affects,
    ) -> Result<()> {
        let rows: Vec<R> = rows.into_iter().collect();
        if let [row] = rows.as_slice() {
            return self.change(sql, row.as_ref(), affects).await;
        }
        let mut statements = Vec::new();
        let mut rest = rows.as_slice();
        while let Some(first) = rest.first() {
            // Powers of two, so that few statements are prepared.
            let count = ROWS_PER_INSERT.min(1 << rest.len().ilog2());
            let (these, others) = rest.split_at(count);
            rest = others;
            let width = first.as_ref().len();
            let params: Vec<Value<'v>> =
                these.iter().flat_map(|row| row.as_ref().iter().cloned()).collect();
            statements.push((insert_of_rows(sql, width, count), params));
        }
        let inserted = statements.iter().map(|(sql, params)| self.change(sql, params, affects));
        try_join_all(inserted).await.map(drop)
    }

    /// Like [`WriteTx::execute_each`], without the numbers.
    pub fn change_each<'v, R: AsRef<[Value<'v>]> + Send + Sync>(
        &self,
        sql: &str,
        rows: impl IntoIterator<Item = R>,
        affects: Affects,
    ) -> impl Future<Output = Result<()>> + Send {
        self.execute_each(sql, rows, affects).map_ok(drop)
    }
}

fn bind(statement: &mut rusqlite::CachedStatement<'_>, params: &[Value<'_>]) -> Result<()> {
    for (index, value) in params.iter().enumerate() {
        statement.raw_bind_parameter(index + 1, value)?;
    }
    Ok(())
}

fn as_postgres<'p>(
    params: &'p [Value<'p>],
) -> impl ExactSizeIterator<Item = &'p (dyn ToSql + Sync)> + Send {
    params.iter().map(|value| value as &(dyn ToSql + Sync))
}

/// Converts parameters to PostgreSQL's form. No statement has a question mark elsewhere.
pub(crate) fn for_postgres(sql: &str) -> String {
    sql.replace('?', "$")
}
