//! Update and move of content pieces and of their overrides in variants.

use std::sync::Arc;

use galley_api_types::content_piece::{ContentPieceBody, ReferencedResources};
use galley_api_types::problem::{Issue, Step};
use galley_content::Tree;
use galley_domain::audit::AuditAction;
use galley_domain::content_group::GroupPath;
use galley_domain::content_piece::{ContentPiece, ContentPieceChange, PieceField};
use galley_domain::event::ResourceChange;
use galley_domain::revision::{Origin, PartState, RevisionNote};
use galley_domain::variant::{Variant, VariantRef};
use galley_domain::{ContentGroupId, ContentPieceId, Invalid};
use galley_storage::content_piece_revisions::LatestRevision;
use galley_storage::content_piece_view::{self, View};
use galley_storage::event_append;
use galley_storage::{
    Tx, WriteTx, content_groups, content_piece_variants, content_pieces, ordering, variants,
};
use serde_json::json;

use crate::audit::{self, AuditChanges};
use crate::environment::Environment;
use crate::error::Error;
use crate::operations::content_pieces::custom_data::{self, CustomDataChange};
use crate::operations::content_pieces::in_transaction::StoredPiece;
use crate::operations::content_pieces::missing_references::{
    GROUP_NOUN, missing_members, missing_tags, reference_issue, unknown_field,
};
use crate::operations::content_pieces::order_keys::{find_reference, new_order_key};
use crate::operations::content_pieces::published_copy::move_published;
use crate::operations::content_pieces::revisions::{self, PartChange};
use crate::operations::content_pieces::unique_slugs::SlugComparison;
use crate::operations::event;
use crate::precondition::VersionPrecondition;
use crate::references::{self, members_and_actors};
use crate::scope::Scope;

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
    /// True to override values in a variant even if they are those of the piece.
    pub is_exact: bool,
    /// True to replace the author's latest autosave, and to delay the event.
    pub is_autosave: bool,
    /// The note of the revision.
    pub note: Option<RevisionNote>,
}

impl ContentPieceUpdate {
    /// Returns an update of the piece itself that changes nothing.
    pub fn of(id: ContentPieceId) -> Self {
        Self {
            id,
            variant: None,
            change: ContentPieceChange::default(),
            content_group_id: None,
            reference_id: None,
            content: None,
            is_exact: false,
            is_autosave: false,
            note: None,
        }
    }

    /// Returns true if it may move the piece, or change its slug, which must then be compared with
    /// those of other pieces.
    pub(super) fn needs_order_lock(&self) -> bool {
        self.content_group_id.is_some() || self.reference_id.is_some() || self.change.slug.is_some()
    }
}

/// The piece of an update, locked, and the part that is updated.
struct UpdatedPart {
    piece: ContentPiece,
    path: GroupPath,
    latest: LatestRevision,
    /// The variant; `None` for the piece itself.
    variant: Option<Variant>,
    /// The values before the update. The content is read only if the update has one.
    before: PartState,
    after: PartState,
    /// The fields that differ.
    changed: Vec<PieceField>,
}

impl UpdatedPart {
    /// Finds the piece, and locks it.
    async fn find_and_lock(
        tx: &WriteTx<'_>,
        scope: &Scope,
        update: &ContentPieceUpdate,
        expected: &VersionPrecondition,
    ) -> Result<Self, Error> {
        let workspace = scope.workspace;
        if update.needs_order_lock() {
            // Before any row is locked, as a background slice locks in this order, too.
            ordering::lock(tx, workspace).await?;
        }
        let variant = match &update.variant {
            Some(name) => {
                let found = variants::find_named_for_override(tx, workspace, name).await?;
                Some(found.ok_or_else(Error::not_found)?)
            }
            None => None,
        };
        let (id, with_content) = (variant.as_ref().map(|one| one.id), update.content.is_some());
        let found = content_pieces::find_for_revision(tx, workspace, update.id, id, with_content);
        let found = found.await?.ok_or_else(Error::not_found)?;
        if !scope.contains(&found.path) {
            return Err(Error::not_found());
        }
        expected.check_version(found.piece.version)?;
        let piece = found.piece;
        let (before, after) = match id {
            Some(id) => {
                let fields = content_piece_variants::find(tx, workspace, piece.id, id).await?;
                let fields = fields.unwrap_or_default();
                let change = update.change.clone();
                let after = if update.is_exact {
                    fields.clone().set(change)
                } else {
                    fields.clone().changed(&piece.fields, change)
                };
                let shown = found.variant_content.as_ref().or(found.content.as_ref());
                let content = match &update.content {
                    Some(tree) if update.is_exact || tree.is_none() || tree.as_ref() != shown => {
                        tree.clone()
                    }
                    _ => found.variant_content.clone(),
                };
                let before = PartState { fields, content: found.variant_content };
                (before, PartState { fields: after, content })
            }
            None => {
                let fields = piece.fields.changed(update.change.clone());
                let content = update.content.clone();
                let content = content.map(|tree| tree.unwrap_or_else(|| Tree::empty().to_json()));
                let before =
                    PartState { fields: piece.fields.clone().into(), content: found.content };
                (before, PartState { fields: fields.into(), content })
            }
        };
        let (path, latest) = (found.path, found.latest);
        let changed = before.differences(&after);
        Ok(Self { piece, path, latest, variant, before, after, changed })
    }

    /// Returns the piece with its fields after the update, without overrides.
    fn piece_after(&self) -> ContentPiece {
        let after = self.variant.is_none().then(|| self.after.fields.clone().into_fields());
        let fields = after.flatten().unwrap_or_else(|| self.piece.fields.clone());
        ContentPiece { fields, ..self.piece.clone() }
    }

    /// Returns `piece` as it is in the updated variant.
    fn shown(&self, piece: ContentPiece) -> ContentPiece {
        match &self.variant {
            Some(_) => piece.with_overrides(self.after.fields.clone()),
            None => piece,
        }
    }

    /// Returns the piece before the update, as it was in the updated variant.
    fn shown_before(&self) -> ContentPiece {
        let piece = self.piece.clone();
        match &self.variant {
            Some(_) => piece.with_overrides(self.before.fields.clone()),
            None => piece,
        }
    }

    /// Stores the overrides and the content.
    async fn store(&self, tx: &WriteTx<'_>, scope: &Scope) -> Result<(), Error> {
        let (workspace, id) = (scope.workspace, self.piece.id);
        let changes_content = self.changed.contains(&PieceField::Content);
        let Some(variant) = &self.variant else {
            if let Some(tree) = self.after.content.as_ref().filter(|_| changes_content) {
                let before = self.before.content.as_deref();
                content_pieces::update_content(tx, workspace, id, before, tree).await?;
            }
            return Ok(());
        };
        if self.before.fields != self.after.fields {
            let (before, fields) = (&self.before.fields, &self.after.fields);
            content_piece_variants::update(tx, workspace, id, variant.id, before, fields).await?;
        }
        let (variant, before) = (variant.id, self.before.content.as_deref());
        match &self.after.content {
            _ if !changes_content => {}
            Some(tree) => {
                content_piece_variants::update_content(tx, workspace, id, variant, before, tree)
                    .await?;
            }
            None => {
                content_piece_variants::delete_content(tx, workspace, id, variant, before).await?;
            }
        }
        Ok(())
    }

    fn into_change(self, update: &ContentPieceUpdate) -> PartChange<'_> {
        PartChange {
            piece: self.piece,
            path: self.path,
            latest: self.latest,
            variant: self.variant.map(|variant| variant.id),
            before: self.before,
            after: self.after,
            fields: self.changed,
            is_autosave: update.is_autosave,
            note: update.note.as_ref(),
        }
    }
}

/// An update without issues, and the piece after it.
struct CheckedUpdate {
    part: Box<UpdatedPart>,
    /// The piece with its fields after the update, without overrides.
    after: ContentPiece,
    /// `after` as it is in the updated variant.
    shown: ContentPiece,
    /// The group after the update.
    group: ContentGroupId,
    /// The path of `group`.
    path: GroupPath,
    /// The resources that `shown` refers to.
    referenced: ReferencedResources,
    /// The piece after which it is placed.
    reference: Option<ContentPiece>,
}

impl CheckedUpdate {
    /// Finds the piece, locks it, and checks the update.
    async fn find(
        tx: &WriteTx<'_>,
        environment: &Environment,
        scope: &Scope,
        update: &ContentPieceUpdate,
        expected: &VersionPrecondition,
    ) -> Result<Self, Error> {
        let part = UpdatedPart::find_and_lock(tx, scope, update, expected);
        let part = Box::new(Box::pin(part).await?);
        let before = &part.piece;
        let after = part.piece_after();
        let shown = part.shown(after.clone());
        let group = update.content_group_id.unwrap_or(before.content_group_id);
        let path = if group == before.content_group_id {
            part.path.clone()
        } else {
            content_groups::path(tx, scope.workspace, group).await?
        };
        let publisher = before.publication.published.map(|published| published.by);
        let actors = [before.created_by, before.updated_by, publisher, Some(scope.author)];
        let members = members_and_actors(&shown.fields.members, actors.into_iter().flatten());
        let (tags, variants) = (&shown.fields.tags, &before.variants);
        let (cache, workspace) = (environment.references(), scope.workspace);
        let referenced = references::find_for_write(tx, cache, workspace, tags, &members, variants);
        let mut referenced = referenced.await?;
        referenced.hides_emails = scope.hides_emails;
        let reference = find_reference(tx, scope, update.reference_id.flatten()).await?;
        let mut issues =
            update_issues(scope, update, &referenced, group, &path, reference.as_ref());
        if scope.contains(&path) {
            issues.extend(custom_data_issues(tx, scope, &part, &after, group).await?);
        }
        Error::reject_issues(issues)?;
        Ok(Self { part, after, shown, group, path, referenced, reference })
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
    // Some futures are boxed, as they would double the size of every update's own.
    let checked = CheckedUpdate::find(tx, environment, scope, update, expected);
    let CheckedUpdate { part, after, shown, group, path, mut referenced, reference } =
        Box::pin(checked).await?;
    let before = part.piece.clone();
    let changes_slug = part.changed.contains(&PieceField::Slug);
    let slugs = if changes_slug || group != before.content_group_id {
        // Before a position is stored, as the transaction that has the lock may wait for that.
        Some(SlugComparison::begin(tx, scope, group).await?)
    } else {
        None
    };
    let reference = update.reference_id.map(|_| reference);
    let place = new_order_key(tx, environment, scope, &before, group, reference);
    let place = Box::pin(place).await?;
    if part.changed.is_empty() && place.is_none() {
        if !update.is_autosave {
            let change = part.into_change(update);
            Box::pin(revisions::complete_autosave(tx, environment, scope, change)).await?;
        }
        return Ok(StoredPiece { piece: shown, referenced });
    }
    part.store(tx, scope).await?;
    let mut variants = before.variants.clone();
    let variant = part.variant.clone();
    if let Some(variant) = &variant {
        variants = content_piece_variants::ids_of_piece(tx, scope.workspace, before.id).await?;
        referenced.variants.insert(variant.id, Arc::new(variant.key.clone()));
    }
    let moves = place.is_some();
    let order = place.unwrap_or_else(|| before.order.clone());
    let now = environment.now();
    let updated_at = now.max(before.updated_at);
    let shown_before = (part.path != path).then(|| part.shown_before());
    let moved_between = (part.path.clone(), path.clone());
    let paths = ResourceChange::PieceUpdated { before: part.path.clone(), after: path };
    let fields = part.changed.clone();
    let change = part.into_change(update);
    let change = PartChange { is_autosave: change.is_autosave && !moves, ..change };
    let recorded = revisions::record(tx, environment, scope, change, updated_at);
    let recorded = Box::pin(recorded).await?;
    let piece = ContentPiece {
        content_group_id: group,
        placed_at: if order == before.order { before.placed_at } else { now },
        order,
        variants,
        version: before.version + 1,
        updated_at,
        updated_by: Some(scope.author),
        revision: recorded.number,
        ..after
    };
    append_audit_entry(tx, environment, scope, (&before, &piece), fields, recorded.continues);
    content_pieces::update(tx, scope.workspace, &before, &piece).await?;
    if moves {
        Box::pin(move_published(tx, environment, scope, &piece, moved_between)).await?;
    }
    if let Some(slugs) = slugs {
        let field = if changes_slug { "slug" } else { "contentGroupId" };
        slugs.check(tx, scope, piece.id, field).await?;
    }
    let updated = StoredPiece { piece: ContentPiece { fields: shown.fields, ..piece }, referenced };
    if !recorded.delays_event {
        let (variant, before) = (variant.as_ref(), shown_before.as_ref());
        append_event(tx, environment, scope, paths, variant, before, &updated).await?;
    }
    Ok(updated)
}

/// Appends the event of an update. `before` is the piece before the update as it was in the updated
/// variant, if its path changed.
async fn append_event(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    paths: ResourceChange,
    variant: Option<&Variant>,
    before: Option<&ContentPiece>,
    updated: &StoredPiece,
) -> Result<(), Error> {
    let key = variant.map(|variant| &variant.key);
    let data_before = match before {
        Some(piece) => {
            let of_piece = [piece].into_iter();
            let referenced = references::of_pieces(tx, scope.workspace, of_piece).await?;
            Some(ContentPieceBody::event_data(piece, &referenced, key))
        }
        None => None,
    };
    let data = ContentPieceBody::event_data(&updated.piece, &updated.referenced, key);
    let event = event(environment, paths, data, data_before);
    event_append::append(tx, scope.workspace, [event], updated.piece.updated_at).await?;
    Ok(())
}

/// Appends the audit entry of an update. The entry of an autosave's revision stands for the
/// autosaves of the same fields that continue it.
fn append_audit_entry(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    (before, after): (&ContentPiece, &ContentPiece),
    fields: Vec<PieceField>,
    continues: bool,
) {
    if continues || scope.origin == Origin::Import {
        return;
    }
    let action = match scope.origin {
        Origin::Restore => AuditAction::ContentPieceRestore,
        _ => AuditAction::ContentPieceUpdate,
    };
    let revision = after.revision.filter(|_| !fields.is_empty());
    let changes = AuditChanges::of_piece(fields, revision);
    let changes = if after.content_group_id != before.content_group_id {
        let group = |piece: &ContentPiece| json!({"contentGroupId": piece.content_group_id});
        changes.with(AuditChanges::updated(group(before), group(after)))
    } else if after.order != before.order {
        changes.with_field("position")
    } else {
        changes
    };
    audit::record(tx, environment, scope, action, before.id, changes);
}

async fn custom_data_issues(
    tx: &Tx<'_>,
    scope: &Scope,
    part: &UpdatedPart,
    after: &ContentPiece,
    group: ContentGroupId,
) -> Result<Vec<Issue>, Error> {
    let overrides = part.variant.as_ref();
    let overrides = overrides.map(|one| (one.id, &part.before.fields, &part.after.fields));
    let change = CustomDataChange { before: &part.piece, fields: &after.fields, overrides, group };
    custom_data::issues_of_change(tx, scope, change).await
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
    let found =
        content_piece_view::find_visible(tx, scope.workspace, update.id, None, view).await?;
    let (_, content) = found.ok_or_else(Error::not_found)?;
    Ok(content.unwrap_or_else(|| Tree::empty().to_json()))
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
