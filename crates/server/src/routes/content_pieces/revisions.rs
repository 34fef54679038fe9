//! `/content-pieces/revisions`, `/content-pieces/revision` and `/content-pieces/restore`.

use galley_api_types::content_piece::{ContentPieceBody, ReferencedResources};
use galley_api_types::revision::{
    RequestedRevision, RevisionBody, RevisionChange, RevisionToRestore,
};
use galley_application::Error;
use galley_application::operations::content_pieces::{
    self, NotedRevision, PieceAtRevision, RevisionListRequest, RevisionNoteChange, RevisionOfPiece,
    RevisionRestoration, StoredPiece,
};
use galley_domain::revision::RevisionNote;
use galley_domain::{ContentPieceId, RevisionId};
use utoipa::IntoParams;

use crate::extract::actor::{ReadContentPieces, WriteContentPieces, WriteTrash};
use crate::extract::pagination::PER_PAGE_MAX;
use crate::extract::query::RequestedId;
use crate::routes::content_pieces::format::{FormatParameters, ResponseFormat};
use crate::routes::prelude::*;

/// The parameters of the list, besides those of paging.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
#[expect(dead_code, reason = "only its description is used")]
struct RevisionListParameters {
    /// The identifier or key of a variant. Only the changes of its overrides are listed.
    variant: Option<String>,
}

/// List the revisions of a content piece
///
/// Returns the changes of the piece and of its variants, newest first. A move is not among them, as
/// group and order have no revisions. All revisions are kept for 30 days, then the last one of each
/// day for a year, unless the server is configured otherwise.
#[utoipa::path(
    get, path = "/content-pieces/revisions", operation_id = "listRevisions",
    params(("id" = schemas::ContentPieceId, Query), IdPageParams, RevisionListParameters),
    responses((status = 200, body = [RevisionBody<'_>])),
)]
pub(crate) async fn list(
    actor: Actor<ReadContentPieces>,
    staleness: StalenessBound,
    query: Query,
) -> Result<Response, Problem> {
    let mut list = IdListQuery::<RevisionId>::parse(query, PER_PAGE_MAX);
    let id = list.query().id::<ContentPieceId>();
    let variant = list.query().variant();
    list.query().finish()?;
    let variant = variant.map(RequestedId::get).transpose()?;
    let request = RevisionListRequest { piece: id.get()?, variant, page: list.page() };
    let found = content_pieces::revisions(&actor.stale_caller(staleness), request).await?;
    let (mut revisions, referenced) = (found.revisions, found.referenced);
    let id = |one: &RevisionOfPiece| RevisionId::of(one.piece, one.revision.number);
    Ok(list.respond(&mut revisions, id, |one| revision_body(one, &referenced)))
}

/// Get a content piece at a revision
///
/// Returns the piece as `GET /content-pieces` does, with its fields and content as they were after
/// the change. Its group and order are the current ones. Deleted tags, members and variants are
/// left out.
#[utoipa::path(
    get, path = "/content-pieces/revision", operation_id = "getRevision",
    params(
        ("id" = schemas::ContentPieceId, Query),
        ("revision" = schemas::RevisionId, Query),
        FormatParameters,
    ),
    responses((status = 200, body = ContentPieceBody<'_>)),
)]
pub(crate) async fn get(
    State(app): State<App>,
    actor: Actor<ReadContentPieces>,
    mut query: Query,
) -> Result<Response, Problem> {
    let id = query.id::<ContentPieceId>();
    let revision = query.named_id::<RevisionId>("revision");
    let format = ResponseFormat::parse(&mut query);
    let variant = query.variant();
    query.finish()?;
    let variant = variant.map(RequestedId::get).transpose()?;
    let (id, revision) = (id.get()?, revision.get()?);
    let found =
        content_pieces::get_at_revision(actor.caller(), id, revision, variant, format.view());
    let PieceAtRevision { revision, view } = found.await?;
    let revision = serde_json::to_string(&revision_body(&revision, &view.referenced));
    let revision = revision.expect("a revision is JSON");
    format.respond(&app, actor.workspace, view, Some(("revision", revision))).await
}

/// Change the note of a revision
///
/// A revision with a note is kept for ever, and no autosave replaces it. The entity tag is that of
/// the piece.
#[utoipa::path(
    put, path = "/content-pieces/revision", operation_id = "updateRevision",
    request_body = RevisionChange,
    responses((status = 200, body = RevisionBody<'_>)),
)]
pub(crate) async fn update(
    actor: Actor<WriteContentPieces>,
    mut request: ChangeRequest<RevisionChange>,
) -> Result<Response, Problem> {
    // An issue of the note rejects the request.
    let note = request.fields.clearable::<RevisionNote>("note").ok().flatten();
    let ParsedChange { prefer, expected, id, change } = request.parse(actor.caller()).await?;
    let change = RevisionNoteChange { id, revision: requested(change.revision)?, note };
    let NotedRevision { revision, version, referenced } =
        content_pieces::update_revision_note(actor.caller(), change, expected).await?;
    let body = revision_body(&revision, &referenced);
    Ok(response::updated(prefer, version, &body))
}

/// Delete a revision
///
/// Deletes the revision for good. Later revisions of other variants then show the values before it.
/// The latest revision of the piece and of each variant is rejected, as its values are current, and
/// so is the published one.
#[utoipa::path(
    delete, path = "/content-pieces/revision", operation_id = "deleteRevision",
    params(
        ("id" = schemas::ContentPieceId, Query),
        ("revision" = schemas::RevisionId, Query),
    ),
    responses((status = 409, description = "latest_revision, published_revision")),
)]
pub(crate) async fn delete(
    actor: Actor<WriteTrash>,
    expected: VersionPrecondition,
    mut query: Query,
) -> Result<Response, Problem> {
    let id = query.id::<ContentPieceId>();
    let revision = query.named_id::<RevisionId>("revision");
    query.finish()?;
    content_pieces::purge_revision(actor.caller(), id.get()?, revision.get()?, expected).await?;
    Ok(response::no_content())
}

/// Restore a revision
///
/// Sets the fields and the content of the piece and of its variants to their values at the
/// revision. Each part that differs, the piece itself or a variant, gets a revision and an event.
/// Group and order stay. Tags, members and variants that were deleted since are left out.
#[utoipa::path(
    post, path = "/content-pieces/restore", operation_id = "restoreRevision",
    request_body = RevisionToRestore,
    responses(
        (status = 200, body = ContentPieceBody<'_>),
        (status = 409, description = "slug_taken"),
    ),
)]
pub(crate) async fn restore(
    actor: Actor<WriteContentPieces>,
    expected: VersionPrecondition,
    request: ChangeActionRequest<RevisionToRestore>,
) -> Result<Response, Problem> {
    let (prefer, id, change, request) = request.parse(actor.caller()).await?;
    let restoration = RevisionRestoration {
        id,
        revision: requested(change.revision)?,
        fields: change.fields.map(|fields| fields.0),
    };
    let respond = Respond::new(move |restored: &StoredPiece| {
        created::changed(prefer, restored.piece.version, &restored.body())
    });
    let restored =
        content_pieces::restore_revision(actor.caller(), restoration, expected, request, respond);
    Ok(created::respond(restored.await?))
}

fn revision_body<'a>(
    found: &'a RevisionOfPiece,
    referenced: &'a ReferencedResources,
) -> RevisionBody<'a> {
    let author = found.revision.created_by.map(|actor| referenced.actor(actor));
    RevisionBody::new(found.piece, &found.revision, found.size, author)
}

fn requested(RequestedRevision(id): RequestedRevision) -> Result<RevisionId, Error> {
    id.ok_or_else(Error::not_found)
}
