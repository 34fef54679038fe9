//! Creation of content pieces, and their restoration from another store.

use futures_util::future::try_join;
use galley_api_types::content_piece::{ContentPieceBody, ReferencedResources};
use galley_domain::audit::AuditAction;
use galley_domain::content_piece::{ContentPiece, ContentPieceFields, Description};
use galley_domain::event::ResourceChange;
use galley_domain::publication::{ContentView, Publication};
use galley_domain::revision::Origin;
use galley_domain::{ContentGroupId, ContentPieceId};
use galley_storage::content_piece_revisions::StoredRevision;
use galley_storage::content_piece_variants::Override;
use galley_storage::event_append;
use galley_storage::{
    Tx, WriteTx, content_groups, content_piece_revisions, content_piece_variants, content_pieces,
    ordering, variants,
};

use crate::audit::{self, AuditChanges};
use crate::custom_data_schema::WorkBudget;
use crate::environment::Environment;
use crate::error::Error;
use crate::operations::content_pieces::custom_data;
use crate::operations::content_pieces::missing_references::{
    GROUP_NOUN, missing_in_fields, reference_issue, unknown_field,
};
use crate::operations::content_pieces::order_keys::{find_reference, place_of};
use crate::operations::content_pieces::published_copy::restore_published;
use crate::operations::content_pieces::revisions;
use crate::operations::content_pieces::unique_slugs::SlugComparison;
use crate::operations::{event, restored_version};
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
    let cache = environment.references();
    let referenced = references::find_for_write(tx, cache, scope.workspace, tags, &members, &[]);
    let mut referenced = referenced.await?;
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
        revision: Some(revisions::number_of_creation(scope.origin)),
        publication: Publication::default(),
    };
    content_pieces::insert(tx, scope.workspace, &piece, &new.content).await?;
    if piece.has_revisions() {
        revisions::record_creation(tx, scope, &piece).await?;
    }
    slugs.check(tx, scope, piece.id, "slug").await?;
    let data = ContentPieceBody::event_data(&piece, &referenced, None);
    let added = event(environment, ResourceChange::PieceAdded(path), data, None);
    event_append::append(tx, scope.workspace, [added], now).await?;
    if scope.origin != Origin::Import {
        let changes = AuditChanges::of_piece([], Some(piece.latest_revision()));
        audit::record(tx, environment, scope, AuditAction::ContentPieceCreate, piece.id, changes);
    }
    Ok(StoredPiece { piece, referenced })
}

/// A piece from another store.
#[derive(Debug, Clone, Copy)]
pub struct RestoredPiece<'p> {
    /// The piece.
    pub piece: &'p ContentPiece,
    /// The content's tree as JSON.
    pub content: &'p str,
    /// Its overrides in variants.
    pub overrides: &'p [Override],
    /// Its revisions, the latest last, unless the store has them.
    pub revisions: &'p [StoredRevision],
}

/// Restores a piece from another store, with its id, position, times and overrides in variants. Its
/// version is one that it never had here. Returns false if the piece exists, which is then not
/// changed. If another piece has its position, the restored one is placed after that.
pub async fn restore(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    restored: RestoredPiece<'_>,
) -> Result<bool, Error> {
    let RestoredPiece { piece, content, overrides, revisions } = restored;
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
    let publisher = piece.publication.published.map(|published| published.by);
    let actors = [piece.created_by, piece.updated_by, publisher].into_iter().flatten();
    let members = members_and_actors(members, actors);
    let mut referenced = references::find(tx, workspace, tags, &members, &[]).await?;
    Error::reject_issues(missing_in_fields(&piece.fields, &referenced))?;
    let version = restored_version(environment).max(piece.version + 1);
    let mut piece = ContentPiece { version, ..piece.clone() };
    if let Some(place) = ordering::find(tx, workspace, &piece.order).await? {
        piece.order = ordering::after(tx, workspace, &place, environment.random()).await?;
    }
    ordering::note_if_long(tx, workspace, &piece.order).await?;
    let slugs = SlugComparison::begin(tx, scope, piece.content_group_id).await?;
    content_pieces::insert(tx, workspace, &piece, content).await?;
    content_piece_revisions::insert(tx, workspace, piece.id, revisions).await?;
    for overrides in overrides {
        let view = ContentView::Current;
        content_piece_variants::insert(tx, workspace, view, piece.id, overrides).await?;
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
    let added = event(environment, ResourceChange::PieceAdded(path.clone()), data, None);
    event_append::append(tx, workspace, [added], environment.now()).await?;
    restore_published(tx, environment, scope, &piece, &path).await?;
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
    /// Finds a piece with the resources that it refers to.
    pub(super) async fn find(
        tx: &Tx<'_>,
        scope: &Scope,
        id: ContentPieceId,
    ) -> Result<Self, Error> {
        let found = content_pieces::find(tx, scope.workspace, id).await?;
        let piece = found.ok_or_else(Error::not_found)?;
        let of_piece = [&piece].into_iter();
        let mut referenced = references::of_pieces(tx, scope.workspace, of_piece).await?;
        referenced.hides_emails = scope.hides_emails;
        Ok(Self { piece, referenced })
    }

    /// Returns the representation that GET responds with.
    pub fn body(&self) -> ContentPieceBody<'_> {
        let description = self.piece.fields.description.as_ref().map(Description::as_str);
        ContentPieceBody::new(&self.piece, &self.referenced, description)
    }
}
