//! The JSON Schemas that groups have for the custom data of their pieces.

use galley_domain::custom_data_schema::CustomDataSchema;
use galley_domain::{ContentGroupId, WorkspaceId};

use crate::engine::{Result, Row, Tx, params, read_row};

/// The schema that applies to the pieces of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectiveSchema {
    /// The group that has it: the group itself, or its nearest ancestor with one.
    pub group: ContentGroupId,
    /// The schema.
    pub schema: CustomDataSchema,
}

/// Finds the schema that applies to the pieces of a group.
pub async fn effective(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    group: ContentGroupId,
) -> Result<Option<EffectiveSchema>> {
    let sql = "SELECT g.id, g.custom_data_schema FROM content_groups g
        JOIN content_group_paths p ON p.workspace_id = g.workspace_id AND p.ancestor_id = g.id
        WHERE g.workspace_id = ?1 AND g.custom_data_schema IS NOT NULL AND p.group_id = ?2
        ORDER BY p.depth LIMIT 1";
    let read = |row: &Row<'_>| Ok(read_row!(row, 0 => EffectiveSchema { group, schema }));
    tx.find(sql, params![workspace, group], read).await
}
