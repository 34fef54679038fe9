//! Workspaces.

use galley_domain::{Timestamp, WorkspaceId};

use crate::error::Result;
use crate::tx::{Tx, WriteTx};
use crate::value::params;

/// Keeps a new workspace, and starts the count of its events.
pub async fn insert(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    name: &str,
    now: Timestamp,
) -> Result<()> {
    tx.execute(
        "INSERT INTO workspaces (id, name, version, created_at_ms) VALUES (?1, ?2, 1, ?3)",
        params![workspace, name, now],
    )
    .await?;
    tx.execute(
        "INSERT INTO workspace_sequences (workspace_id, last_sequence) VALUES (?1, 0)",
        params![workspace],
    )
    .await?;
    Ok(())
}

/// Whether the database has any workspace.
pub async fn any(tx: &Tx<'_>) -> Result<bool> {
    tx.exists("SELECT 1 FROM workspaces LIMIT 1", &[]).await
}

/// The id and name of every workspace, the oldest first.
pub async fn list(tx: &Tx<'_>) -> Result<Vec<(WorkspaceId, String)>> {
    let sql = "SELECT id, name FROM workspaces ORDER BY id";
    tx.query(sql, &[], |row| Ok((row.parse(0)?, row.text(1)?.to_owned()))).await
}

/// Holds off other changes of the kind that could cross, such as two moves of groups that would
/// make a circle, until this transaction ends.
pub async fn lock(tx: &WriteTx<'_>, workspace: WorkspaceId) -> Result<()> {
    let sql = format!("SELECT 1 FROM workspaces WHERE id = ?1{}", tx.for_update());
    tx.exists(&sql, params![workspace]).await.map(drop)
}
