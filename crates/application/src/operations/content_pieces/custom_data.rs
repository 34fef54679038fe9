//! Validation of custom data by the schema of a piece's group.

use galley_api_types::problem::Issue;
use galley_domain::content_piece::{
    ContentPiece, ContentPieceFields, ContentPieceOverrides, CustomData,
};
use galley_domain::{ContentGroupId, VariantId};
use galley_storage::{Tx, content_piece_variants, custom_data_schemas, variants};

use crate::custom_data_schema::{WorkBudget, validate};
use crate::error::Error;
use crate::scope::Scope;

/// Returns the issues of a piece's custom data in a group.
pub(super) async fn issues_in(
    tx: &Tx<'_>,
    scope: &Scope,
    group: ContentGroupId,
    fields: &ContentPieceFields,
    budget: &mut WorkBudget,
) -> Result<Vec<Issue>, Error> {
    let found = custom_data_schemas::effective(tx, scope.workspace, group).await?;
    Ok(found.map_or_else(Vec::new, |found| {
        validate(&found.schema, fields.custom_data.as_ref().map(CustomData::as_str), budget)
    }))
}

/// The change of a piece, as far as it concerns its custom data.
pub(super) struct CustomDataChange<'c> {
    pub(super) before: &'c ContentPiece,
    /// The fields after the change, without overrides.
    pub(super) fields: &'c ContentPieceFields,
    /// The changed variant, and its overrides before and after.
    pub(super) overrides: Option<(VariantId, &'c ContentPieceOverrides, &'c ContentPieceOverrides)>,
    pub(super) group: ContentGroupId,
}

/// Returns the issues of a change that sets custom data, or moves the piece under another schema.
pub(super) async fn issues_of_change(
    tx: &Tx<'_>,
    scope: &Scope,
    change: CustomDataChange<'_>,
) -> Result<Vec<Issue>, Error> {
    let CustomDataChange { before, fields, overrides, group } = change;
    let is_set = fields.custom_data != before.fields.custom_data;
    let is_overridden =
        overrides.is_some_and(|(_, before, after)| before.custom_data != after.custom_data);
    let moves = group != before.content_group_id;
    if !is_set && !is_overridden && !moves {
        return Ok(Vec::new());
    }
    let workspace = scope.workspace;
    let Some(found) = custom_data_schemas::effective(tx, workspace, group).await? else {
        return Ok(Vec::new());
    };
    let is_under_another = moves
        && custom_data_schemas::effective(tx, workspace, before.content_group_id)
            .await?
            .is_none_or(|earlier| earlier.schema != found.schema);
    let mut budget = WorkBudget::default();
    let mut issues_of = |data: Option<&CustomData>| {
        validate(&found.schema, data.map(CustomData::as_str), &mut budget)
    };
    let mut all = Vec::new();
    if is_set || is_under_another {
        all.extend(issues_of(fields.custom_data.as_ref()));
    }
    if let Some((_, _, after)) = overrides
        && (is_overridden || is_under_another)
        && after.custom_data.is_some()
    {
        all.extend(issues_of(after.custom_data.as_ref()));
    }
    if is_under_another && !before.variants.is_empty() {
        for (id, stored, _) in content_piece_variants::of_piece(tx, workspace, before.id).await? {
            let is_changed = overrides.is_some_and(|(changed, ..)| changed == id);
            if is_changed || stored.custom_data.is_none() {
                continue;
            }
            let mut issues = issues_of(stored.custom_data.as_ref());
            if !issues.is_empty()
                && let Some(variant) = variants::find(tx, workspace, id).await?
            {
                for issue in &mut issues {
                    issue.message += &format!(" (in the variant {})", variant.key.as_str());
                }
            }
            all.extend(issues);
        }
    }
    Ok(all)
}
