//! `DELETE /content-pieces?id=`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::schemas;
use galley_application::VersionPrecondition;
use galley_application::operations::content_pieces;
use galley_domain::ContentPieceId;
use galley_storage::WriteTx;

use crate::app::App;
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
    State(app): State<App>,
    actor: Actor<WriteContentPieces>,
    expected: VersionPrecondition,
    mut query: Query,
) -> Result<Response, Problem> {
    let id = query.id::<ContentPieceId>();
    query.finish()?;
    let (id, scope) = (id.get()?, actor.scope());
    let environment = app.environment().clone();
    let write = async move |tx: &WriteTx<'_>| {
        content_pieces::delete(tx, &environment, &scope, id, &expected).await
    };
    app.database().write("content_pieces.delete", write).await?;
    Ok(response::no_content())
}
