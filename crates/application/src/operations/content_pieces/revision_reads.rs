//! Reads of revisions, and of pieces as they were at one.

use galley_api_types::content_piece::ReferencedResources;
use galley_domain::content_piece::{ContentPiece, ContentPieceFields};
use galley_domain::revision::{PartState, Revision};
use galley_domain::variant::VariantRef;
use galley_domain::{ContentPieceId, RevisionId, VariantId, WorkspaceId};
use galley_storage::content_piece_revisions::{self, RevisionPage};
use galley_storage::content_piece_view::{self, PieceInView, View};
use galley_storage::{IdPage, Tx, content_piece_variants, content_pieces};

use crate::caller::Caller;
use crate::error::Error;
use crate::operations::content_pieces::piece_view::PieceView;
use crate::operations::content_pieces::revisions::first_revision;
use crate::operations::variants;
use crate::references::{self, members_and_actors};
use crate::scope::Scope;

/// A revision of a piece, and its size in bytes.
#[derive(Debug, Clone)]
pub struct RevisionOfPiece {
    /// The piece.
    pub piece: ContentPieceId,
    /// The revision.
    pub revision: Revision,
    /// The bytes of the values before its change.
    pub size: i64,
}

/// A page of the revisions of a piece, latest first.
#[derive(Debug)]
pub struct RevisionList {
    /// The revisions.
    pub revisions: Vec<RevisionOfPiece>,
    /// Their authors.
    pub referenced: ReferencedResources,
}

/// The piece, the variant and the page of a list of revisions.
#[derive(Debug, Clone)]
pub struct RevisionListRequest {
    /// The piece.
    pub piece: ContentPieceId,
    /// Lists only the changes of this variant's overrides.
    pub variant: Option<VariantRef>,
    /// The page, after the identifier of a revision.
    pub page: IdPage,
}

/// Lists the revisions of a piece, latest first.
pub async fn revisions(
    caller: &Caller,
    request: RevisionListRequest,
) -> Result<RevisionList, Error> {
    let scope = caller.scope();
    let read = async move |tx: &Tx<'_>| {
        let piece = find_visible(tx, &scope, request.piece).await?;
        let variant = variants::find_named(tx, &scope, request.variant.as_ref()).await?;
        let variant = variant.map(|variant| variant.id);
        let IdPage { limit, offset, ref after } = request.page;
        let after = after.as_deref().and_then(|id| id.parse::<RevisionId>().ok());
        let before = after.map(|id| number_of(id, piece.id)).transpose()?;
        let page = RevisionPage { variant, before, limit, offset };
        let found = content_piece_revisions::list(tx, scope.workspace, piece.id, page).await?;
        let id = piece.id;
        let mut revisions: Vec<_> = found
            .into_iter()
            .map(|(revision, size)| RevisionOfPiece { piece: id, revision, size })
            .collect();
        let is_listed = variant.is_none() && offset == 0 && before.is_none_or(|before| before > 1);
        if !piece.has_revisions() && is_listed {
            let revision = first_revision(&piece);
            revisions.push(RevisionOfPiece { piece: id, revision, size: 0 });
        }
        let actors = revisions.iter().filter_map(|one| one.revision.created_by);
        let members = members_and_actors(&[], actors);
        let mut referenced = references::find(tx, scope.workspace, &[], &members, &[]).await?;
        referenced.hides_emails = scope.hides_emails;
        Ok(RevisionList { revisions, referenced })
    };
    caller.read("content_pieces.revisions", read).await
}

/// A piece as it was at a revision.
#[derive(Debug)]
pub struct PieceAtRevision {
    /// The revision.
    pub revision: RevisionOfPiece,
    /// The piece as seen in the variant, with its content if it was requested.
    pub view: PieceView,
}

/// Returns a piece in the caller's scope as it was at a revision, as seen in the variant.
pub async fn get_at_revision(
    caller: &Caller,
    id: ContentPieceId,
    revision: RevisionId,
    variant: Option<VariantRef>,
    view: View,
) -> Result<PieceAtRevision, Error> {
    let scope = caller.scope();
    let read = async move |tx: &Tx<'_>| {
        let variant = variants::find_named(tx, &scope, variant.as_ref()).await?;
        let view = View { variant: variant.map(|variant| variant.id), ..view };
        let found = read_at(tx, &scope, id, revision, view).await?;
        let StateAtRevision { revision, piece: (mut piece, content) } = found;
        piece.variants = variants_at(tx, scope.workspace, &piece, revision.revision.number).await?;
        let of_piece = [&piece].into_iter();
        let mut referenced = references::of_pieces(tx, scope.workspace, of_piece).await?;
        referenced.hides_emails = scope.hides_emails;
        let view = PieceView { piece: (piece, content), referenced };
        Ok(PieceAtRevision { revision, view })
    };
    caller.read_long("content_pieces.get_at_revision", read).await
}

/// The two states of a piece that are compared.
#[derive(Debug)]
pub struct ComparedPieces {
    /// The state at the earlier revision.
    pub from: (ContentPiece, String),
    /// The state at the later revision.
    pub to: (ContentPiece, String),
}

/// Returns a piece in the caller's scope at two revisions, as seen in the variant.
pub async fn compare(
    caller: &Caller,
    id: ContentPieceId,
    (from, to): (RevisionId, RevisionId),
    variant: Option<VariantRef>,
) -> Result<ComparedPieces, Error> {
    let scope = caller.scope();
    let read = async move |tx: &Tx<'_>| {
        let variant = variants::find_named(tx, &scope, variant.as_ref()).await?;
        let variant = variant.map(|variant| variant.id);
        let view = View { variant, content: true, ..View::default() };
        let from = read_at(tx, &scope, id, from, view).await?.piece;
        let to = read_at(tx, &scope, id, to, view).await?.piece;
        let with_content = |(piece, content): (_, Option<String>)| {
            Ok::<_, Error>((piece, content.ok_or_else(Error::not_found)?))
        };
        Ok(ComparedPieces { from: with_content(from)?, to: with_content(to)? })
    };
    caller.read_long("content_pieces.compare", read).await
}

/// Returns the number of a revision of a piece.
pub(super) fn number_of(id: RevisionId, piece: ContentPieceId) -> Result<i64, Error> {
    id.number_in(piece).ok_or_else(Error::not_found)
}

/// Finds a revision of a piece.
pub(super) async fn find_revision(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    piece: &ContentPiece,
    id: RevisionId,
) -> Result<RevisionOfPiece, Error> {
    let number = number_of(id, piece.id)?;
    if number == 1 && !piece.has_revisions() {
        return Ok(RevisionOfPiece { piece: piece.id, revision: first_revision(piece), size: 0 });
    }
    let found = content_piece_revisions::find(tx, workspace, piece.id, number).await?;
    let found = found.ok_or_else(Error::not_found)?;
    let size = i64::try_from(found.undo.size()).unwrap_or(i64::MAX);
    Ok(RevisionOfPiece { piece: piece.id, revision: found.revision, size })
}

/// Returns a part of a piece as it was at a revision.
pub(super) async fn part_at(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    piece: &ContentPiece,
    variant: Option<VariantId>,
    number: i64,
) -> Result<PartState, Error> {
    let latest = latest_part(tx, workspace, piece, variant).await?;
    let state = content_piece_revisions::state_at(tx, workspace, piece.id, variant, latest, number);
    Ok(state.await?)
}

/// Returns the current state of a part of a piece.
pub(super) async fn latest_part(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    piece: &ContentPiece,
    variant: Option<VariantId>,
) -> Result<PartState, Error> {
    let Some(variant) = variant else {
        let content = content_pieces::find_content(tx, workspace, piece.id, None).await?;
        return Ok(PartState { fields: piece.fields.clone().into(), content });
    };
    let fields = content_piece_variants::find(tx, workspace, piece.id, variant).await?;
    let content = content_piece_variants::find_content(tx, workspace, piece.id, variant).await?;
    Ok(PartState { fields: fields.unwrap_or_default(), content })
}

/// Returns the fields of a piece itself, which has each required one.
pub(super) fn fields_of(part: PartState) -> Result<ContentPieceFields, Error> {
    part.fields
        .into_fields()
        .ok_or_else(|| galley_storage::Error::corrupt("a revision lacks a required field").into())
}

/// Finds a piece in the scope.
async fn find_visible(
    tx: &Tx<'_>,
    scope: &Scope,
    id: ContentPieceId,
) -> Result<ContentPiece, Error> {
    scope.require_current_view()?;
    let within = scope.content_groups.as_deref();
    let view = View::default();
    let found = content_piece_view::find_visible(tx, scope.workspace, id, within, view).await?;
    found.map(|(piece, _)| piece).ok_or_else(Error::not_found)
}

/// The limit on attempts to read a piece that is changed meanwhile.
const ATTEMPTS_MAX: usize = 5;

/// A piece at a revision, as seen in a variant, with its content if it was requested. It has its
/// current variants.
struct StateAtRevision {
    revision: RevisionOfPiece,
    piece: PieceInView,
}

/// Reads a piece at a revision. On PostgreSQL each statement sees the latest state, so a read
/// during a change is tried again.
async fn read_at(
    tx: &Tx<'_>,
    scope: &Scope,
    id: ContentPieceId,
    revision: RevisionId,
    view: View,
) -> Result<StateAtRevision, Error> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let piece = find_visible(tx, scope, id).await?;
        let version = piece.version;
        let read = try_read_at(tx, scope, piece, revision, view).await;
        if attempts < ATTEMPTS_MAX && find_visible(tx, scope, id).await?.version != version {
            continue;
        }
        return read;
    }
}

async fn try_read_at(
    tx: &Tx<'_>,
    scope: &Scope,
    piece: ContentPiece,
    revision: RevisionId,
    view: View,
) -> Result<StateAtRevision, Error> {
    let workspace = scope.workspace;
    let found = find_revision(tx, workspace, &piece, revision).await?;
    let number = found.revision.number;
    let mut own = part_at(tx, workspace, &piece, None, number).await?;
    let mut content = own.content.take();
    let mut fields = fields_of(own)?;
    if let Some(variant) = view.variant {
        let overrides = part_at(tx, workspace, &piece, Some(variant), number).await?;
        fields = fields.with_overrides(overrides.fields);
        content = overrides.content.or(content);
    }
    let (updated_at, updated_by) = (found.revision.created_at, found.revision.created_by);
    let piece = ContentPiece { fields, updated_at, updated_by, ..piece };
    Ok(StateAtRevision { revision: found, piece: (piece, content.filter(|_| view.content)) })
}

/// Returns the variants that a piece overrode at a revision. Deleted variants are omitted.
async fn variants_at(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    piece: &ContentPiece,
    number: i64,
) -> Result<Vec<VariantId>, Error> {
    let changed = existing_variants_changed_after(tx, workspace, piece.id, number).await?;
    let mut variants = piece.variants.clone();
    for variant in changed {
        variants.retain(|&one| one != variant);
        if part_at(tx, workspace, piece, Some(variant), number).await? != PartState::default() {
            variants.push(variant);
        }
    }
    variants.sort_unstable();
    Ok(variants)
}

/// Returns the existing variants in which a piece was changed after a revision.
pub(super) async fn existing_variants_changed_after(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    piece: ContentPieceId,
    number: i64,
) -> Result<Vec<VariantId>, Error> {
    let changed =
        content_piece_revisions::variants_changed_after(tx, workspace, piece, number).await?;
    let existing = galley_storage::variants::find_all(tx, workspace, &changed).await?;
    let is_existing = |id: &VariantId| existing.iter().any(|variant| variant.id == *id);
    Ok(changed.into_iter().filter(is_existing).collect())
}

/// Removes tags and members that no longer exist.
pub(super) async fn leave_out_deleted(
    tx: &Tx<'_>,
    scope: &Scope,
    state: &mut PartState,
) -> Result<(), Error> {
    let fields = &mut state.fields;
    let tags = fields.tags.as_deref().unwrap_or_default();
    let members = fields.members.as_deref().unwrap_or_default();
    let existing = references::find(tx, scope.workspace, tags, members, &[]).await?;
    if let Some(tags) = &mut fields.tags {
        tags.retain(|tag| existing.tags.contains_key(tag));
    }
    if let Some(members) = &mut fields.members {
        members.retain(|member| existing.members.contains_key(member));
    }
    Ok(())
}
