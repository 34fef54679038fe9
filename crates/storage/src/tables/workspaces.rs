//! Workspaces.

use galley_domain::workspace::{Billing, Workspace};
use galley_domain::{Timestamp, WorkspaceId};

use crate::engine::{Affects, Result, Row, Tx, WriteTx, params, read_row};

/// The columns of the table `w` that [`read`] reads.
pub(crate) const COLUMNS: &str = "w.id, w.name, w.description, w.logo, w.language, w.customer_id, \
    w.subscription_status, w.subscription_plan, w.subscription_data, \
    w.subscription_expires_at_ms, w.version";

/// Reads a workspace whose columns start at `first`.
pub(crate) fn read(row: &Row<'_>, first: usize) -> Result<Workspace> {
    let billing = read_row!(row, first + 5 => Billing {
        customer_id, subscription_status, subscription_plan, subscription_data,
        subscription_expires_at,
    });
    let version = row.get(first + 10)?;
    Ok(
        read_row!(row, first => Workspace { id, name, description, logo, language; billing, version }),
    )
}

/// Inserts a new workspace, with the sequence of its events.
pub async fn insert(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    name: &str,
    now: Timestamp,
) -> Result<()> {
    let sql = "INSERT INTO workspaces (id, name, version, created_at_ms) VALUES (?1, ?2, 1, ?3)";
    tx.execute(sql, params![workspace, name, now], Affects::Access(workspace)).await?;
    let sql = "INSERT INTO workspace_sequences (workspace_id, last_sequence) VALUES (?1, 0)";
    tx.change(sql, params![workspace], Affects::Nothing).await
}

/// Finds a workspace.
pub async fn find(tx: &Tx<'_>, workspace: WorkspaceId) -> Result<Option<Workspace>> {
    let sql = format!("SELECT {COLUMNS} FROM workspaces w WHERE w.id = ?1");
    tx.find(&sql, params![workspace], |row| read(row, 0)).await
}

/// Updates a workspace.
pub async fn update(tx: &WriteTx<'_>, workspace: &Workspace) -> Result<()> {
    let billing = &workspace.billing;
    let sql = "UPDATE workspaces SET name = ?2, description = ?3, logo = ?4, customer_id = ?5,
            subscription_status = ?6, subscription_plan = ?7, subscription_data = ?8,
            subscription_expires_at_ms = ?9, version = ?10, language = ?11
        WHERE id = ?1";
    tx.change(
        sql,
        params! {
            workspace.id, &workspace.name, &workspace.description, &workspace.logo,
            &billing.customer_id, &billing.subscription_status, &billing.subscription_plan,
            &billing.subscription_data, billing.subscription_expires_at, workspace.version,
            &workspace.language
        },
        Affects::Access(workspace.id),
    )
    .await
}

/// Returns true if the database has any workspace.
pub async fn any(tx: &Tx<'_>) -> Result<bool> {
    tx.exists("SELECT 1 FROM workspaces LIMIT 1", &[]).await
}

/// Returns true if the database has other workspaces than this one.
pub async fn has_others(tx: &Tx<'_>, workspace: WorkspaceId) -> Result<bool> {
    tx.exists("SELECT 1 FROM workspaces WHERE id <> ?1 LIMIT 1", params![workspace]).await
}

/// Lists the id and name of each workspace, the oldest first.
pub async fn list(tx: &Tx<'_>) -> Result<Vec<(WorkspaceId, String)>> {
    let sql = "SELECT id, name FROM workspaces ORDER BY id";
    tx.query(sql, &[], |row| Ok((row.get(0)?, row.get(1)?))).await
}

/// Locks the workspace for structural changes until the transaction ends. It serializes changes
/// that could conflict, such as two moves of groups that would form a cycle.
pub async fn lock(tx: &WriteTx<'_>, workspace: WorkspaceId) -> Result<()> {
    // Every row of the workspace refers to it. A stronger lock would block the writers of such
    // rows, and transactions that already hold one would deadlock here.
    let sql = format!("SELECT 1 FROM workspaces WHERE id = ?1{}", tx.for_no_key_update());
    tx.exists(&sql, params![workspace]).await.map(drop)
}
