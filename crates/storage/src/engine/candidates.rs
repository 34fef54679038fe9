//! Locks of rows that a worker finds across workspaces.
//!
//! A worker first reads candidates without locks. It then locks the rows of one workspace in each
//! statement, because a distributed engine locks rows of one shard only. Rows that another node has
//! locked are skipped. Several nodes read the same candidates, so more are read than needed.

use galley_domain::WorkspaceId;

use crate::engine::error::Result;
use crate::engine::row::{Column, Row};
use crate::engine::sql_list::in_list;
use crate::engine::value::Value;
use crate::engine::write_transaction::WriteTx;

/// The factor of candidates to rows, if there are other nodes.
const CANDIDATES_PER_ROW: usize = 4;

/// The rows to find and lock.
pub(crate) struct Candidates<'s> {
    /// The columns to read.
    pub(crate) columns: &'s str,
    /// The table.
    pub(crate) table: &'s str,
    /// The column that identifies a row, or some rows, of a workspace.
    pub(crate) key: &'s str,
    /// The condition, with the parameters that [`lock_candidates`] gets.
    pub(crate) condition: &'s str,
    /// The order.
    pub(crate) order: &'s str,
}

/// Locks and returns at most `max` rows.
pub(crate) async fn lock_candidates<'v, K, T: Send>(
    tx: &WriteTx<'_>,
    Candidates { columns, table, key, condition, order }: Candidates<'_>,
    params: &[Value<'v>],
    max: usize,
    read: impl Fn(&Row<'_>) -> Result<T> + Send + Sync,
) -> Result<Vec<T>>
where
    K: Column + Into<Value<'v>> + Copy + Eq + Send + Sync,
{
    let factor = if tx.has_other_writers() { CANDIDATES_PER_ROW } else { 1 };
    let mut all = params.to_vec();
    all.push(max.saturating_mul(factor).into());
    let sql = format!(
        "SELECT workspace_id, {key} FROM {table} WHERE {condition} ORDER BY {order} LIMIT ?{}",
        all.len()
    );
    let mut found: Vec<(WorkspaceId, Vec<K>)> = Vec::new();
    for (workspace, key) in tx.query(&sql, &all, |row| Ok((row.get(0)?, row.get(1)?))).await? {
        match found.iter_mut().find(|(known, _)| *known == workspace) {
            Some((_, keys)) if keys.last() == Some(&key) => {}
            Some((_, keys)) => keys.push(key),
            None => found.push((workspace, vec![key])),
        }
    }
    let mut locked = Vec::new();
    for (workspace, keys) in found {
        let left = max - locked.len().min(max);
        if left == 0 {
            break;
        }
        let mut all = params.to_vec();
        all.extend([workspace.into(), left.into()]);
        let (of_workspace, of_limit) = (all.len() - 1, all.len());
        let listed = in_list(key, keys.iter().copied(), &mut all);
        let lock = tx.for_update_skip_locked();
        let sql = format!(
            "SELECT {columns} FROM {table}
             WHERE workspace_id = ?{of_workspace}{listed} AND {condition}
             ORDER BY {order} LIMIT ?{of_limit}{lock}"
        );
        locked.extend(tx.query(&sql, &all, &read).await?);
    }
    Ok(locked)
}
