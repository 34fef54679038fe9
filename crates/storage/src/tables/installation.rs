//! Data of the installation as a whole.

use crate::engine::{Affects, Result, Tx, WriteTx, params};

/// Locks the installation until the transaction ends.
pub async fn lock(tx: &WriteTx<'_>) -> Result<()> {
    let sql = format!("SELECT 1 FROM schema_migrations WHERE version = 1{}", tx.for_update());
    tx.exists(&sql, &[]).await.map(drop)
}

/// Finds the known text that is encrypted with the installation's key.
pub async fn find_key_check(tx: &Tx<'_>) -> Result<Option<Vec<u8>>> {
    tx.find("SELECT sealed FROM key_check WHERE id = 1", &[], |row| row.get(0)).await
}

/// Stores the known text encrypted with the installation's key, unless there is one already.
pub async fn insert_key_check(tx: &WriteTx<'_>, sealed: &[u8]) -> Result<()> {
    let sql = "INSERT INTO key_check (id, sealed) VALUES (1, ?1) ON CONFLICT DO NOTHING";
    tx.change(sql, params![sealed], Affects::Nothing).await
}
