//! `/content-pieces`.

pub(crate) mod convert;
pub(crate) mod create;
pub(crate) mod create_several;
pub(crate) mod diff;
pub(crate) mod format;
mod id_filter;
mod input;
pub(crate) mod list;
pub(crate) mod publishing;
pub(crate) mod revisions;
pub(crate) mod search;
pub(crate) mod sources;
pub(crate) mod trash;
pub(crate) mod update;

use galley_api_types::content_piece::ContentPieceBody;
use galley_application::operations::{self, content_pieces};
use galley_domain::ContentPieceId;
use utoipa::IntoParams;

use crate::extract::actor::{PreviewContentPieces, WriteContentPieces};
use crate::extract::query::RequestedId;
use crate::routes::content_pieces::format::{FormatParameters, ResponseFormat};
use crate::routes::prelude::*;

/// The parameter of a deletion for good.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only its description is used")]
pub(crate) struct PermanentParameter {
    /// Delete for good, also from the trash, with all revisions. This needs the permission
    /// `trash:write`.
    #[param(default = false)]
    permanent: Option<bool>,
}

/// The path of the resource.
const PATH: &str = "/content-pieces";

/// Get a content piece
#[utoipa::path(
    get, path = "/content-pieces", operation_id = "getContentPiece",
    params(("id" = schemas::ContentPieceId, Query), FormatParameters),
    responses((status = 200, body = ContentPieceBody<'_>)),
)]
pub(crate) async fn get(
    State(app): State<App>,
    actor: Actor<PreviewContentPieces>,
    staleness: StalenessBound,
    mut query: Query,
) -> Result<Response, Problem> {
    let id = query.id::<ContentPieceId>();
    let format = ResponseFormat::parse(&mut query);
    let variant = query.variant();
    query.finish()?;
    let variant = variant.map(RequestedId::get).transpose()?;
    let caller = actor.stale_caller(staleness);
    let view = content_pieces::get(&caller, id.get()?, variant, format.view()).await?;
    format.respond(&app, actor.workspace, view, None).await
}

/// Delete a content piece
///
/// Moves the piece into the trash, unless the server is configured without one. A repeated request
/// returns 404.
#[utoipa::path(
    delete, path = "/content-pieces", operation_id = "deleteContentPiece",
    params(("id" = schemas::ContentPieceId, Query), PermanentParameter),
)]
pub(crate) async fn delete(
    actor: Actor<WriteContentPieces>,
    expected: VersionPrecondition,
    mut query: Query,
) -> Result<Response, Problem> {
    let id = query.id::<ContentPieceId>();
    let permanent = query.boolean("permanent");
    query.finish()?;
    if permanent {
        operations::trash::delete_piece(actor.caller(), id.get()?, expected).await?;
    } else {
        content_pieces::delete(actor.caller(), id.get()?, expected).await?;
    }
    Ok(response::no_content())
}
