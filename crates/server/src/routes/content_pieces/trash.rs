//! `/content-pieces/trash` and `/content-pieces/undelete`.

use galley_api_types::content_group::ContentGroupBody;
use galley_api_types::content_piece::ContentPieceBody;
use galley_api_types::trash::{TrashEntryBody, TrashEntryToRestore};
use galley_application::operations::trash::{self, TrashList, Undeleted, Undeletion};
use galley_domain::trash::{TrashEntry, TrashPosition};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use crate::extract::actor::{ReadContentPieces, WriteContentPieces};
use crate::extract::pagination::PER_PAGE_MAX;
use crate::routes::prelude::*;

/// The parameters of a page of the trash.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
#[expect(dead_code, reason = "only its description is used")]
struct TrashListParameters {
    /// The page number, from 1. Ignored if a cursor is given.
    #[param(minimum = 1, maximum = 1_000_000_000_000_i64, default = 1, example = 1)]
    page: Option<i64>,
    /// The limit of items on the page.
    #[param(minimum = 1, maximum = 1000, default = 20, example = 50)]
    per_page: Option<i64>,
    /// The position to continue from, as in the `Link` header of the previous page.
    #[param(pattern = "^[A-Za-z0-9_-]+$")]
    cursor: Option<String>,
}

/// The restored content piece or content group.
#[derive(Serialize, ToSchema)]
#[schema(as = Undeleted)]
#[serde(untagged)]
enum UndeletedBody<'a> {
    Piece(Box<ContentPieceBody<'a>>),
    Group(ContentGroupBody<'a>),
}

/// List the trash
///
/// Returns deleted content pieces and content groups, latest first. A group that was deleted with
/// its contents is one entry. Entries are removed for good after 30 days, unless the server is
/// configured otherwise.
#[utoipa::path(
    get, path = "/content-pieces/trash", operation_id = "listTrash",
    params(TrashListParameters),
    responses(
        (status = 200, body = [TrashEntryBody<'_>]),
        (status = 404, description = "not_found"),
    ),
)]
pub(crate) async fn list(
    actor: Actor<ReadContentPieces>,
    query: Query,
) -> Result<Response, Problem> {
    let mut list = IdListQuery::<TrashPosition>::parse(query, PER_PAGE_MAX);
    list.query().finish()?;
    let found = trash::list(actor.caller(), list.page()).await?;
    let TrashList { mut entries, referenced } = found;
    Ok(list.respond(&mut entries, TrashEntry::position, |entry| {
        TrashEntryBody::new(entry, referenced.actor(entry.deleted_by))
    }))
}

/// Restore from the trash
///
/// Restores a content piece or a content group with everything in it: with its identifier, at its
/// former position, with its revisions. In another group, a piece is placed at the end. Tags,
/// members and variants that were deleted since are left out. The restoration of a group needs the
/// permission `contentGroups:write` as well.
#[utoipa::path(
    post, path = "/content-pieces/undelete", operation_id = "undelete",
    request_body = TrashEntryToRestore,
    responses(
        (status = 200, body = UndeletedBody<'_>),
        (status = 400, description = "unknown_reference"),
        (status = 409, description = "slug_taken"),
    ),
)]
pub(crate) async fn undelete(
    actor: Actor<WriteContentPieces>,
    request: ChangeActionRequest<TrashEntryToRestore>,
) -> Result<Response, Problem> {
    let (prefer, id, TrashEntryToRestore { content_group_id }, request) =
        request.parse(actor.caller()).await?;
    let respond = Respond::new(move |undeleted: &Undeleted| {
        let (version, body) = match undeleted {
            Undeleted::Piece(stored) => {
                (stored.piece.version, UndeletedBody::Piece(Box::new(stored.body())))
            }
            Undeleted::Group(view) => (view.group.version, UndeletedBody::Group(view.body())),
        };
        created::changed(prefer, version, &body)
    });
    let undeletion = Undeletion { id, content_group_id };
    Ok(created::respond(trash::undelete(actor.caller(), undeletion, request, respond).await?))
}
