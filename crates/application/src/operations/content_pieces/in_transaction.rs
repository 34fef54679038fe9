//! Creation, update, move and deletion of content pieces.

use std::sync::Arc;

use futures_util::future::try_join;
use galley_api_types::content_piece::{ContentPieceBody, ReferencedResources};
use galley_api_types::problem::{Issue, Step};
use galley_content::Tree;
use galley_domain::content_group::GroupPath;
use galley_domain::content_piece::{
    ContentPiece, ContentPieceChange, ContentPieceFields, ContentPieceOverrides, Description,
};
use galley_domain::event::ResourceChange;
use galley_domain::variant::{Variant, VariantRef};
use galley_domain::{ContentGroupId, ContentPieceId, Invalid};
use galley_storage::content_piece_variants::Override;
use galley_storage::content_pieces::View;
use galley_storage::event_append::{self, NewEvent};
use galley_storage::{
    Tx, WriteTx, content_groups, content_piece_variants, content_pieces, ordering, variants,
};

use crate::custom_data_schema::WorkBudget;
use crate::environment::Environment;
use crate::error::Error;
use crate::operations::content_pieces::custom_data::{self, CustomDataChange};
use crate::operations::content_pieces::missing_references::{
    GROUP_NOUN, missing_in_fields, missing_members, missing_tags, reference_issue, unknown_field,
};
use crate::operations::content_pieces::order_keys::{find_reference, new_order_key, place_of};
use crate::operations::content_pieces::unique_slugs::SlugComparison;
use crate::operations::{event, restored_version};
use crate::precondition::VersionPrecondition;
use crate::references::{self, members_and_actors};
use crate::scope::Scope;

/// A piece to create.
#[derive(Debug, Clone)]
pub struct NewContentPiece {
    /// The fields.
    pub fields: ContentPieceFields,
    /// The group.
    pub content_group_id: ContentGroupId,
    /// The piece after which it is placed; `None` for the end.
    pub reference_id: Option<ContentPieceId>,
    /// The content's tree as JSON.
    pub content: String,
}

/// An update of a piece.
#[derive(Debug, Clone)]
pub struct ContentPieceUpdate {
    /// The piece.
    pub id: ContentPieceId,
    /// The variant to update; `None` for the piece itself. Group and position belong to the piece.
    pub variant: Option<VariantRef>,
    /// The changed fields.
    pub change: ContentPieceChange,
    /// The new group.
    pub content_group_id: Option<ContentGroupId>,
    /// The piece after which it is placed; `Some(None)` for the front of its group.
    pub reference_id: Option<Option<ContentPieceId>>,
    /// The content's tree as JSON. `Some(None)` sets empty content, or in a variant the content of
    /// the piece.
    pub content: Option<Option<String>>,
}

impl ContentPieceUpdate {
    /// Returns true if it may move the piece, or change its slug, which must then be compared with
    /// those of other pieces.
    pub(super) fn needs_order_lock(&self) -> bool {
        self.content_group_id.is_some() || self.reference_id.is_some() || self.change.slug.is_some()
    }
}

/// Creates a piece, and returns it. `budget` limits the validation of its custom data.
pub async fn create_in(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    new: &NewContentPiece,
    budget: &mut WorkBudget,
) -> Result<StoredPiece, Error> {
    // Both are sent together. Later statements read order keys, which the lock protects.
    let ((), path) = try_join(
        ordering::lock(tx, scope.workspace),
        content_groups::path(tx, scope.workspace, new.content_group_id),
    )
    .await?;
    let (tags, members) = (&new.fields.tags, &new.fields.members);
    let members = members_and_actors(members, [scope.author]);
    let mut referenced = references::find(tx, scope.workspace, tags, &members, &[]).await?;
    referenced.hides_emails = scope.hides_emails;
    let reference = find_reference(tx, scope, new.reference_id).await?;
    let mut issues = missing_in_fields(&new.fields, &referenced);
    if !scope.contains(&path) {
        issues.push(unknown_field("contentGroupId", GROUP_NOUN));
    }
    if new.reference_id.is_some() {
        issues.extend(reference_issue(reference.as_ref(), Some(new.content_group_id)));
    }
    if scope.contains(&path) {
        let group = new.content_group_id;
        issues.extend(custom_data::issues_in(tx, scope, group, &new.fields, budget).await?);
    }
    Error::reject_issues(issues)?;
    let random = environment.random();
    let order = match &reference {
        Some(reference) => {
            ordering::after(tx, scope.workspace, &place_of(reference), random).await?
        }
        None => ordering::at_the_end(tx, scope.workspace, random).await?,
    };
    let slugs = SlugComparison::begin(tx, scope, new.content_group_id).await?;
    let now = environment.now();
    let piece = ContentPiece {
        id: ContentPieceId::new(environment.new_id()),
        content_group_id: new.content_group_id,
        order,
        placed_at: now,
        fields: new.fields.clone(),
        variants: Vec::new(),
        version: 1,
        created_at: now,
        updated_at: now,
        created_by: Some(scope.author),
        updated_by: Some(scope.author),
    };
    content_pieces::insert(tx, scope.workspace, &piece, &new.content).await?;
    slugs.check(tx, scope, piece.id, "slug").await?;
    let data = ContentPieceBody::event_data(&piece, &referenced, None);
    let added = event(environment, ResourceChange::PieceAdded(path), data, None);
    event_append::append(tx, scope.workspace, [added], now).await?;
    Ok(StoredPiece { piece, referenced })
}

/// Restores a piece from another store, with its id, position, times and overrides in variants. Its
/// version is one that it never had here. Returns false if the piece exists, which is then not
/// changed. If another piece has its position, the restored one is placed last.
pub async fn restore(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    piece: &ContentPiece,
    content: &str,
    overrides: &[Override],
) -> Result<bool, Error> {
    let workspace = scope.workspace;
    ordering::lock(tx, workspace).await?;
    if content_pieces::find(tx, workspace, piece.id).await?.is_some() {
        return Ok(false);
    }
    let path = content_groups::path(tx, workspace, piece.content_group_id).await?;
    if !scope.contains(&path) {
        Error::reject_issues(vec![unknown_field("contentGroupId", GROUP_NOUN)])?;
    }
    for (variant, overrides, _) in overrides {
        if variants::find(tx, workspace, *variant).await?.is_none() {
            Error::reject_issues(vec![unknown_field("variants", "variant")])?;
        }
        let shown = piece.fields.clone().with_overrides(overrides.clone());
        let referenced = references::find(tx, workspace, &shown.tags, &shown.members, &[]).await?;
        Error::reject_issues(missing_in_fields(&shown, &referenced))?;
    }
    let (tags, members) = (&piece.fields.tags, &piece.fields.members);
    let actors = [piece.created_by, piece.updated_by].into_iter().flatten();
    let members = members_and_actors(members, actors);
    let mut referenced = references::find(tx, workspace, tags, &members, &[]).await?;
    Error::reject_issues(missing_in_fields(&piece.fields, &referenced))?;
    let mut piece = ContentPiece { version: restored_version(environment), ..piece.clone() };
    if ordering::is_taken(tx, workspace, &piece.order).await? {
        piece.order = ordering::at_the_end(tx, workspace, environment.random()).await?;
    }
    ordering::note_if_long(tx, workspace, &piece.order).await?;
    let slugs = SlugComparison::begin(tx, scope, piece.content_group_id).await?;
    content_pieces::insert(tx, workspace, &piece, content).await?;
    for (variant, overrides, content) in overrides {
        content_piece_variants::update(tx, workspace, piece.id, *variant, overrides).await?;
        if let Some(content) = content {
            content_piece_variants::update_content(tx, workspace, piece.id, *variant, content)
                .await?;
        }
    }
    if !overrides.is_empty() {
        let before = piece.clone();
        piece.variants = content_piece_variants::ids_of_piece(tx, workspace, piece.id).await?;
        content_pieces::update(tx, workspace, &before, &piece).await?;
        let of_piece = references::find(tx, workspace, &[], &[], &piece.variants).await?;
        referenced.variants = of_piece.variants;
    }
    slugs.check(tx, scope, piece.id, "slug").await?;
    let data = ContentPieceBody::event_data(&piece, &referenced, None);
    let added = event(environment, ResourceChange::PieceAdded(path), data, None);
    event_append::append(tx, workspace, [added], environment.now()).await?;
    Ok(true)
}

/// A stored piece, and the resources that it refers to.
#[derive(Debug)]
pub struct StoredPiece {
    /// The piece, as it is in the updated variant.
    pub piece: ContentPiece,
    /// The tags and members that it refers to.
    pub referenced: ReferencedResources,
}

impl StoredPiece {
    /// Returns the representation that GET responds with.
    pub fn body(&self) -> ContentPieceBody<'_> {
        let description = self.piece.fields.description.as_ref().map(Description::as_str);
        ContentPieceBody::new(&self.piece, &self.referenced, description)
    }
}

/// Updates a piece, and returns it. An update without changes does not increment the version.
pub async fn update_in(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    update: &ContentPieceUpdate,
    expected: &VersionPrecondition,
) -> Result<StoredPiece, Error> {
    let (before, path_before, variant) = find_and_lock(tx, scope, update, expected).await?;
    let fields = match &variant {
        Some(_) => before.fields.clone(),
        None => before.fields.changed(update.change.clone()),
    };
    let shown = match &variant {
        Some(variant) => fields.clone().with_overrides(variant.after.clone()),
        None => fields.clone(),
    };
    let group = update.content_group_id.unwrap_or(before.content_group_id);
    let path = if group == before.content_group_id {
        path_before.clone()
    } else {
        content_groups::path(tx, scope.workspace, group).await?
    };
    let actors = [before.created_by, before.updated_by, Some(scope.author)];
    let members = members_and_actors(&shown.members, actors.into_iter().flatten());
    let mut referenced =
        references::find(tx, scope.workspace, &shown.tags, &members, &before.variants).await?;
    referenced.hides_emails = scope.hides_emails;
    let reference = find_reference(tx, scope, update.reference_id.flatten()).await?;
    let mut issues = update_issues(scope, update, &referenced, group, &path, reference.as_ref());
    let change = CustomDataChange {
        before: &before,
        fields: &fields,
        overrides: variant.as_ref().map(|one| (one.variant.id, &one.before, &one.after)),
        group,
    };
    if scope.contains(&path) {
        issues.extend(custom_data::issues_of_change(tx, scope, change).await?);
    }
    Error::reject_issues(issues)?;

    let reference = update.reference_id.map(|_| reference);
    let place = new_order_key(tx, environment, scope, &before, group, reference).await?;
    let content_changed = store_content(tx, scope, update, variant.as_ref()).await?;
    let variant_changed = variant.as_ref().is_some_and(|variant| variant.before != variant.after);
    if fields == before.fields && place.is_none() && !content_changed && !variant_changed {
        return Ok(StoredPiece { piece: ContentPiece { fields: shown, ..before }, referenced });
    }
    let mut variants = before.variants.clone();
    if let Some(VariantChangeState { variant, after, .. }) = &variant {
        let workspace = scope.workspace;
        if variant_changed {
            content_piece_variants::update(tx, workspace, before.id, variant.id, after).await?;
        }
        variants = content_piece_variants::ids_of_piece(tx, workspace, before.id).await?;
        referenced.variants.insert(variant.id, Arc::new(variant.key.clone()));
    }
    let order = place.unwrap_or_else(|| before.order.clone());
    let now = environment.now();
    let piece = ContentPiece {
        content_group_id: group,
        placed_at: if order == before.order { before.placed_at } else { now },
        order,
        fields,
        variants,
        version: before.version + 1,
        updated_at: now.max(before.updated_at),
        updated_by: Some(scope.author),
        ..before.clone()
    };
    content_pieces::update(tx, scope.workspace, &before, &piece).await?;
    let changes_slug = match &variant {
        Some(variant) => variant.before.slug != variant.after.slug,
        None => piece.fields.slug != before.fields.slug,
    };
    if changes_slug || piece.content_group_id != before.content_group_id {
        let field = if changes_slug { "slug" } else { "contentGroupId" };
        let slugs = SlugComparison::begin(tx, scope, piece.content_group_id).await?;
        slugs.check(tx, scope, piece.id, field).await?;
    }
    let updated = StoredPiece { piece: ContentPiece { fields: shown, ..piece }, referenced };
    let paths = ResourceChange::PieceUpdated { before: path_before, after: path };
    append_update(tx, environment, scope, before, &updated, variant.as_ref(), paths).await?;
    Ok(updated)
}

/// Returns the piece to update, locked, its group's path, and its state in the variant.
async fn find_and_lock(
    tx: &WriteTx<'_>,
    scope: &Scope,
    update: &ContentPieceUpdate,
    expected: &VersionPrecondition,
) -> Result<(ContentPiece, GroupPath, Option<VariantChangeState>), Error> {
    if update.needs_order_lock() {
        // Before any row is locked, as a background slice locks in this order, too.
        ordering::lock(tx, scope.workspace).await?;
    }
    let variant = match &update.variant {
        Some(name) => {
            let found = variants::find_named_for_override(tx, scope.workspace, name).await?;
            Some(found.ok_or_else(Error::not_found)?)
        }
        None => None,
    };
    let found = content_pieces::find_for_update(tx, scope.workspace, update.id).await?;
    let (before, path) = found.ok_or_else(Error::not_found)?;
    if !scope.contains(&path) {
        return Err(Error::not_found());
    }
    expected.check_version(before.version)?;
    let variant = match variant {
        Some(variant) => Some(VariantChangeState::find(tx, scope, update, variant, &before).await?),
        None => None,
    };
    Ok((before, path, variant))
}

/// Appends the event of an update. If the piece moved, the event has its former state, too.
async fn append_update(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    before: ContentPiece,
    updated: &StoredPiece,
    variant: Option<&VariantChangeState>,
    change: ResourceChange,
) -> Result<(), Error> {
    let key = variant.map(|variant| &variant.variant.key);
    let moved =
        matches!(&change, ResourceChange::PieceUpdated { before, after } if before != after);
    let data_before = if moved {
        let before = match variant {
            Some(variant) => before.with_overrides(variant.before.clone()),
            None => before,
        };
        let referenced = references::of_pieces(tx, scope.workspace, [&before].into_iter()).await?;
        Some(ContentPieceBody::event_data(&before, &referenced, key))
    } else {
        None
    };
    let data = ContentPieceBody::event_data(&updated.piece, &updated.referenced, key);
    let event = event(environment, change, data, data_before);
    event_append::append(tx, scope.workspace, [event], updated.piece.updated_at).await?;
    Ok(())
}

/// Returns the content after an update, in the piece or variant that was updated.
pub async fn content_after(
    tx: &Tx<'_>,
    scope: &Scope,
    update: &ContentPieceUpdate,
) -> Result<String, Error> {
    let variant = match &update.variant {
        Some(name) => variants::find_named(tx, scope.workspace, name).await?,
        None => None,
    };
    let view =
        View { variant: variant.map(|variant| variant.id), content: true, ..View::default() };
    let found = content_pieces::find_visible(tx, scope.workspace, update.id, None, view).await?;
    let (_, content) = found.ok_or_else(Error::not_found)?;
    Ok(content.unwrap_or_else(|| Tree::empty().to_json()))
}

/// The variant of an update, and the piece's overrides in it.
struct VariantChangeState {
    variant: Variant,
    before: ContentPieceOverrides,
    after: ContentPieceOverrides,
}

impl VariantChangeState {
    async fn find(
        tx: &Tx<'_>,
        scope: &Scope,
        update: &ContentPieceUpdate,
        variant: Variant,
        piece: &ContentPiece,
    ) -> Result<Self, Error> {
        let found = content_piece_variants::find(tx, scope.workspace, piece.id, variant.id);
        let before = found.await?.unwrap_or_default();
        let after = before.clone().changed(&piece.fields, update.change.clone());
        Ok(Self { variant, before, after })
    }
}

/// Stores the content of an update. Returns true if it differs from the stored content.
async fn store_content(
    tx: &WriteTx<'_>,
    scope: &Scope,
    update: &ContentPieceUpdate,
    variant: Option<&VariantChangeState>,
) -> Result<bool, Error> {
    let (workspace, id) = (scope.workspace, update.id);
    let Some(tree) = &update.content else { return Ok(false) };
    let variant = variant.map(|variant| variant.variant.id);
    Ok(match (variant, tree) {
        (Some(variant), Some(tree)) => {
            content_piece_variants::update_content(tx, workspace, id, variant, tree).await?
        }
        (Some(variant), None) => {
            content_piece_variants::delete_content(tx, workspace, id, variant).await?
        }
        (None, Some(tree)) => content_pieces::update_content(tx, workspace, id, tree).await?,
        (None, None) => {
            let empty = Tree::empty().to_json();
            content_pieces::update_content(tx, workspace, id, &empty).await?
        }
    })
}

/// Deletes a piece.
pub async fn delete_in(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    id: ContentPieceId,
    expected: &VersionPrecondition,
) -> Result<(), Error> {
    let found = content_pieces::find_for_update(tx, scope.workspace, id).await?;
    let (piece, path) = found.ok_or_else(Error::not_found)?;
    if !scope.contains(&path) {
        return Err(Error::not_found());
    }
    expected.check_version(piece.version)?;
    let referenced = references::of_pieces(tx, scope.workspace, [&piece].into_iter()).await?;
    let removed = removal_event(environment, &piece, &referenced, path);
    content_pieces::delete(tx, scope.workspace, &piece).await?;
    event_append::append(tx, scope.workspace, [removed], environment.now()).await?;
    Ok(())
}

/// Creates the event of a piece's removal from the group at the end of `path`.
pub fn removal_event(
    environment: &Environment,
    piece: &ContentPiece,
    referenced: &ReferencedResources,
    path: GroupPath,
) -> NewEvent {
    let data = ContentPieceBody::event_data(piece, referenced, None);
    event(environment, ResourceChange::PieceRemoved(path), data, None)
}

fn update_issues(
    scope: &Scope,
    update: &ContentPieceUpdate,
    referenced: &ReferencedResources,
    group: ContentGroupId,
    path: &GroupPath,
    reference: Option<&ContentPiece>,
) -> Vec<Issue> {
    let mut issues = Vec::new();
    if let Some(Some(tags)) = &update.change.tags {
        issues.extend(missing_tags(tags, referenced));
    }
    if let Some(Some(members)) = &update.change.members {
        issues.extend(missing_members(members, referenced));
    }
    if !scope.contains(path) {
        issues.push(unknown_field("contentGroupId", GROUP_NOUN));
    }
    if update.reference_id == Some(Some(update.id)) {
        let invalid = Invalid::new("invalid_reference", "must name another piece");
        issues.push(Issue::new(vec![Step::Field("referenceId".to_owned())], &invalid));
    } else if matches!(update.reference_id, Some(Some(_))) {
        issues.extend(reference_issue(reference, Some(group)));
    }
    issues
}
