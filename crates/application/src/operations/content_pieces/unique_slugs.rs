//! Groups whose pieces have unique slugs.
//!
//! A change is checked after it was stored, in its transaction. The flag of a group changes under
//! an exclusive lock of [`ordering::lock`], so no piece is placed meanwhile.

use std::collections::BTreeMap;

use galley_api_types::problem::{DuplicateSlug, Issue, Step};
use galley_domain::{ContentGroupId, ContentPieceId, Invalid};
use galley_storage::unique_slugs::{self, ExaminedPieces, SlugConflict};
use galley_storage::{Tx, WriteTx, content_groups, ordering};

use crate::error::Error;
use crate::rejection::Rejection;
use crate::scope::Scope;

/// The limit on pairs of pieces that one rejection names.
const CONFLICTS_MAX: i64 = 200;

/// Rejects the change of a piece whose slug another piece has. `field` is the changed field.
pub(super) async fn check_piece(
    tx: &WriteTx<'_>,
    scope: &Scope,
    piece: ContentPieceId,
    group: ContentGroupId,
    field: &str,
) -> Result<(), Error> {
    let Some(root) = unique_slugs::root(tx, scope.workspace, group).await? else { return Ok(()) };
    unique_slugs::lock(tx, scope.workspace).await?;
    check(tx, scope, root, ExaminedPieces::One(piece), field).await
}

/// Waits until no piece is being placed in the workspace, before a change of the groups with unique
/// slugs.
pub(crate) async fn lock_groups(tx: &WriteTx<'_>, scope: &Scope) -> Result<(), Error> {
    Ok(ordering::lock_exclusively(tx, scope.workspace).await?)
}

/// Rejects the change of a group if a piece in its subtree has the slug of another one. `field` is
/// the changed field.
pub(crate) async fn check_group(
    tx: &WriteTx<'_>,
    scope: &Scope,
    group: ContentGroupId,
    field: &str,
) -> Result<(), Error> {
    let Some(root) = unique_slugs::root(tx, scope.workspace, group).await? else { return Ok(()) };
    check(tx, scope, root, ExaminedPieces::Under(group), field).await
}

async fn check(
    tx: &Tx<'_>,
    scope: &Scope,
    root: ContentGroupId,
    examined: ExaminedPieces,
    field: &str,
) -> Result<(), Error> {
    let found = unique_slugs::conflicts(tx, scope.workspace, root, examined, CONFLICTS_MAX).await?;
    if found.is_empty() {
        return Ok(());
    }
    let groups: Vec<_> = found.iter().map(|one| one.group_of_other).collect();
    let within = scope.content_groups.as_deref();
    let visible = content_groups::existing(tx, scope.workspace, &groups, within).await?;
    // By slug and variant, so that each is reported once.
    let mut duplicates: BTreeMap<_, DuplicateSlug> = BTreeMap::new();
    for SlugConflict { slug, variant, piece, other, group_of_other } in found {
        let (slug, variant) = (slug.into(), variant.map(String::from));
        let key: (String, Option<String>) = (slug, variant);
        let duplicate = duplicates.entry(key.clone()).or_insert_with(|| DuplicateSlug {
            slug: key.0,
            variant: key.1,
            content_piece_ids: Vec::new(),
        });
        // The examined piece is that of the request.
        let is_of_group = matches!(examined, ExaminedPieces::Under(_));
        let named = is_of_group.then_some(piece);
        let named = named.into_iter().chain(visible.contains(&group_of_other).then_some(other));
        for id in named {
            if !duplicate.content_piece_ids.contains(&id) {
                duplicate.content_piece_ids.push(id);
            }
        }
    }
    let duplicates: Vec<_> = duplicates.into_values().collect();
    let issues = duplicates.iter().map(|duplicate| issue(duplicate, field)).collect();
    Err(Rejection { duplicates, ..Rejection::of_issues(issues) }.into())
}

fn issue(duplicate: &DuplicateSlug, field: &str) -> Issue {
    let DuplicateSlug { slug, variant, content_piece_ids } = duplicate;
    let ids: Vec<_> = content_piece_ids.iter().map(ToString::to_string).collect();
    let pieces = match &*ids {
        [] => "a piece that the token can't see".to_owned(),
        ids => ids.join(", "),
    };
    let variant = variant.as_ref().map_or_else(String::new, |key| format!(" in the variant {key}"));
    let message = format!("must leave slugs unique: {slug:?} is the slug of {pieces}{variant}");
    Issue::new(vec![Step::Field(field.to_owned())], &Invalid::new("slug_taken", message))
}
