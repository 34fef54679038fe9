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

/// The number of issues after which the custom data of no further variant is validated.
const ISSUES_MAX: usize = 100;

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
    let mut all = Vec::new();
    if is_set || is_under_another {
        let data = fields.custom_data.as_ref().map(CustomData::as_str);
        all.extend(validate(&found.schema, data, &mut budget));
    }
    if let Some((_, _, after)) = overrides
        && (is_overridden || is_under_another)
        && let Some(data) = &after.custom_data
    {
        all.extend(validate(&found.schema, Some(data.as_str()), &mut budget));
    }
    let others = before.variants.iter().filter(|_| is_under_another);
    for &id in others.filter(|&&id| overrides.is_none_or(|(changed, ..)| changed != id)) {
        // One at a time, as all of them may be large.
        let stored = content_piece_variants::find(tx, workspace, before.id, id).await?;
        let Some(data) = stored.and_then(|stored| stored.custom_data) else { continue };
        let mut issues = validate(&found.schema, Some(data.as_str()), &mut budget);
        if issues.is_empty() {
            continue;
        }
        if let Some(variant) = variants::find(tx, workspace, id).await? {
            for issue in &mut issues {
                issue.message += &format!(" (in the variant {})", variant.key.as_str());
            }
        }
        all.extend(issues);
        if budget.is_exhausted() || all.len() >= ISSUES_MAX {
            break;
        }
    }
    Ok(all)
}
