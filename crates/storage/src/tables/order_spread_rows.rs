//! Rows of long order keys that are to be spread out.

use galley_domain::{OrderKey, WorkspaceId};

use crate::engine::{Affects, Result, WriteTx, params};

/// The length, in bytes, above which keys are spread out in the background.
const LONG_KEY_LENGTH: usize = 64;

/// Records a long key, so that the pieces around it are spread out.
pub async fn note_if_long(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    order: &OrderKey,
) -> Result<()> {
    if order.as_str().len() <= LONG_KEY_LENGTH {
        return Ok(());
    }
    let sql = "INSERT INTO order_spreads (workspace_id, around) VALUES (?1, ?2)
        ON CONFLICT (workspace_id) DO UPDATE SET next_around = excluded.around";
    tx.change(sql, params![workspace, order], Affects::Nothing).await
}
