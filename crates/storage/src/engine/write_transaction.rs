//! The transactions of writes: statements that change rows, and the changes that are completed at
//! the end of a transaction.

use std::ops::Deref;
use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::TryFutureExt;
use futures_util::future::try_join_all;
use galley_domain::WorkspaceId;
use galley_domain::audit::AuditEntry;
use parking_lot::Mutex;

use crate::engine::change_tracking::{
    Affects, ChangeScope, DataVersion, Generation, LastModified, LastModifiedMap,
};
use crate::engine::error::{Error, Result};
use crate::engine::group_state::GroupState;
use crate::engine::new_event::AppendedEvent;
use crate::engine::postgres::connect::discard_plans;
use crate::engine::sql_list::insert_of_rows;
use crate::engine::transaction::{TransactionEngine, Tx, as_postgres, bind, for_postgres};
use crate::engine::transaction_changes::TransactionChanges;
use crate::engine::value::{Value, params};
use crate::engine::write_pressure::TimeSlice;

/// The limit of rows that one INSERT has.
const ROWS_PER_INSERT: usize = 16;

/// The number of changes after which a transaction on PostgreSQL plans its statements again, and
/// again after twice as many. The writes of a group make fewer. Plans that were made for empty
/// tables may use an index that reads all rows of a workspace, also to check a foreign key.
const CHANGES_BEFORE_REPLANNING: u32 = 1_024;

/// The committed state with which a write on SQLite begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CommittedState<'a> {
    pub(crate) version: DataVersion,
    pub(crate) last_modified: &'a LastModifiedMap,
    /// The changes of earlier writes in the same transaction.
    pub(crate) earlier: &'a ChangeScope,
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
    /// `None` on PostgreSQL, where others may commit during the transaction.
    committed: Option<CommittedState<'a>>,
}

impl<'a> Deref for WriteTx<'a> {
    type Target = Tx<'a>;

    fn deref(&self) -> &Tx<'a> {
        &self.tx
    }
}

impl<'a> WriteTx<'a> {
    pub(crate) fn new(tx: Tx<'a>, slice: Option<&'a TimeSlice>) -> Self {
        let (changes, change_count) = (Mutex::default(), AtomicU32::new(0));
        Self { tx, slice, changes, change_count, group: None, committed: None }
    }

    /// Creates the view of one write on a transaction that a group of writes shares.
    pub(crate) fn of_group(tx: Tx<'a>, group: &'a GroupState) -> Self {
        Self { group: Some(group), ..Self::new(tx, None) }
    }

    /// Sets the committed state with which it begins.
    pub(crate) fn with_committed_state(self, committed: Option<CommittedState<'a>>) -> Self {
        Self { committed, ..self }
    }

    /// Returns the committed data version, and when the workspace was last modified, if the data
    /// that its pieces share are read as they were committed. Returns `None` if the transaction has
    /// changed such data, and on PostgreSQL.
    pub fn committed_state(&self, workspace: WorkspaceId) -> Option<(DataVersion, LastModified)> {
        let CommittedState { version, last_modified, earlier } = self.committed?;
        let has_changed = earlier.affects_shared_data(workspace)
            || self.changes.lock().scope.affects_shared_data(workspace);
        (!has_changed).then(|| (version, last_modified.of(workspace)))
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
                let response = Box::pin(async {
                    if count >= CHANGES_BEFORE_REPLANNING && count.is_power_of_two() {
                        discard_plans(client).await?;
                    }
                    let statement = client.prepare_cached(&for_postgres(sql)).await?;
                    Ok(client.execute_raw(&statement, as_postgres(params)).await?)
                });
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
