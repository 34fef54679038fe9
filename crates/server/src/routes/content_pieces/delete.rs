//! `DELETE /content-pieces?id=`

use axum::response::Response;
use galley_api_types::schemas;
use galley_application::VersionPrecondition;
use galley_application::operations::content_pieces;
use galley_domain::ContentPieceId;

use crate::extract::actor::{Actor, WriteContentPieces};
use crate::extract::query::Query;
use crate::problem::Problem;
use crate::respond::response;

/// Delete a content piece
///
/// A repeated request returns 404.
#[utoipa::path(
    delete,
    path = "/content-pieces",
    operation_id = "deleteContentPiece",
    params(("id" = schemas::ContentPieceId, Query)),
)]
pub(crate) async fn handle(
    actor: Actor<WriteContentPieces>,
    expected: VersionPrecondition,
    mut query: Query,
) -> Result<Response, Problem> {
    let id = query.id::<ContentPieceId>();
    query.finish()?;
    content_pieces::delete(actor.caller(), id.get()?, expected).await?;
    Ok(response::no_content())
}
