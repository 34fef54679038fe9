//! `/content-pieces`.

pub(crate) mod convert;
pub(crate) mod create;
pub(crate) mod create_several;
pub(crate) mod diff;
pub(crate) mod format;
mod id_filter;
mod input;
pub(crate) mod list;
pub(crate) mod revisions;
pub(crate) mod sources;
pub(crate) mod update;

use galley_api_types::content_piece::ContentPieceBody;
use galley_application::operations::content_pieces;
use galley_domain::ContentPieceId;

use crate::extract::actor::{ReadContentPieces, WriteContentPieces};
use crate::extract::query::RequestedId;
use crate::routes::content_pieces::format::{FormatParameters, ResponseFormat};
use crate::routes::prelude::*;

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
    actor: Actor<ReadContentPieces>,
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
/// A repeated request returns 404.
#[utoipa::path(
    delete, path = "/content-pieces", operation_id = "deleteContentPiece",
    params(("id" = schemas::ContentPieceId, Query)),
)]
pub(crate) async fn delete(
    actor: Actor<WriteContentPieces>,
    expected: VersionPrecondition,
    IdQuery(id): IdQuery<ContentPieceId>,
) -> Result<Response, Problem> {
    content_pieces::delete(actor.caller(), id, expected).await?;
    Ok(response::no_content())
}
