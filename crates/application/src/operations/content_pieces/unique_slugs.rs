//! Groups whose pieces have unique slugs.
//!
//! A change is checked after it was stored, in its transaction. The flag of a group changes under
//! an exclusive lock of [`ordering::lock`], so no piece is placed meanwhile.

use std::collections::BTreeMap;

use galley_api_types::problem::{DuplicateSlug, Issue, Step};
use galley_domain::content_group::GroupPath;
use galley_domain::{ContentGroupId, ContentPieceId, Invalid};
use galley_storage::unique_slugs::{self, ExaminedPieces, SlugConflict};
use galley_storage::{Tx, WriteTx, content_groups, content_pieces, ordering};

use crate::error::Error;
use crate::rejection::{Reason, Rejection};
use crate::scope::Scope;

/// The limit on pieces that one change of a group compares.
const COMPARED_MAX: i64 = 100_000;

/// The limit on pairs of pieces that one rejection names.
const CONFLICTS_MAX: i64 = 200;

/// The comparison of a piece that is about to be stored, if its group has unique slugs.
#[must_use]
pub(super) struct SlugComparison {
    root: Option<ContentGroupId>,
}

impl SlugComparison {
    /// Orders the comparison after those of other transactions. Called after [`ordering::lock`] and
    /// before the piece is stored: a write that leaves its group has then changed nothing.
    pub(super) async fn begin(
        tx: &WriteTx<'_>,
        scope: &Scope,
        group: ContentGroupId,
    ) -> Result<Self, Error> {
        let root = unique_slugs::root(tx, scope.workspace, group).await?;
        if root.is_some() {
            unique_slugs::lock(tx, scope.workspace).await?;
        }
        Ok(Self { root })
    }

    /// Rejects the stored piece if another one shows its slug. `field` is the changed field.
    pub(super) async fn check(
        self,
        tx: &WriteTx<'_>,
        scope: &Scope,
        piece: ContentPieceId,
        field: &str,
    ) -> Result<(), Error> {
        let Some(root) = self.root else { return Ok(()) };
        check(tx, scope, root, ExaminedPieces::One(piece), field).await
    }
}

/// Orders a transaction that stores several pieces after the comparisons of others, if one of the
/// groups has unique slugs. Called before the first piece is stored, as the transaction that has
/// the lock may wait for that piece's position.
pub async fn lock_slugs(
    tx: &WriteTx<'_>,
    scope: &Scope,
    groups: &[ContentGroupId],
) -> Result<(), Error> {
    ordering::lock(tx, scope.workspace).await?;
    if unique_slugs::is_any(tx, scope.workspace, groups).await? {
        unique_slugs::lock(tx, scope.workspace).await?;
    }
    Ok(())
}

/// Returns true if a group that moves below `parents` comes into another group with unique slugs.
pub(crate) async fn is_entered(
    tx: &WriteTx<'_>,
    scope: &Scope,
    path: &GroupPath,
    parents: &GroupPath,
) -> Result<bool, Error> {
    let Some(&parent) = parents.groups().last() else { return Ok(false) };
    let root = unique_slugs::root(tx, scope.workspace, parent).await?;
    Ok(root.is_some_and(|root| !path.contains(root)))
}

/// Returns true if a group that moves below `parents` leaves another group with unique slugs. A
/// piece that is being placed under the group would be compared with those of the group that it
/// leaves alone.
pub(crate) async fn is_left(
    tx: &WriteTx<'_>,
    scope: &Scope,
    group: ContentGroupId,
    parents: &GroupPath,
) -> Result<bool, Error> {
    let root = unique_slugs::root(tx, scope.workspace, group).await?;
    Ok(root.is_some_and(|root| root != group && !parents.contains(root)))
}

/// Waits until no piece is being placed in the workspace, before a change of the groups with unique
/// slugs. Rejects the change if the comparison would take long.
pub(crate) async fn lock_groups(
    tx: &WriteTx<'_>,
    scope: &Scope,
    group: ContentGroupId,
) -> Result<(), Error> {
    ordering::lock_exclusively(tx, scope.workspace).await?;
    if content_pieces::has_more_than(tx, scope.workspace, group, COMPARED_MAX).await? {
        let detail = format!(
            "the group and its subgroups contain more than {COMPARED_MAX} pieces, whose slugs \
             would be compared: change some subgroups first"
        );
        return Err(Rejection::new(Reason::TooLarge, detail).into());
    }
    Ok(())
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
    if !scope.sees_pieces {
        let message = "must leave slugs unique: two pieces have the same slug";
        let invalid = Invalid::new("slug_taken", message);
        return Err(Rejection::of_field(field, &invalid).into());
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

/// Names the pieces that the same request has created by their indexes, as they are rolled back.
pub(super) fn with_indexes(error: Error, created: &[ContentPieceId]) -> Error {
    let Error::Rejected(mut rejection) = error else { return error };
    if rejection.duplicates.is_empty() {
        return Error::Rejected(rejection);
    }
    for (index, piece) in created.iter().enumerate() {
        let (id, place) = (piece.to_string(), format!("pieces[{index}]"));
        for issue in &mut rejection.issues {
            issue.message = issue.message.replace(&id, &place);
        }
        for duplicate in &mut rejection.duplicates {
            duplicate.content_piece_ids.retain(|known| known != piece);
        }
    }
    Error::Rejected(rejection)
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
