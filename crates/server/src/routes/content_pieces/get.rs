//! `GET /content-pieces?id=`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::content_piece::ContentPieceBody;
use galley_api_types::schemas;
use galley_application::operations::content_pieces::{self, PieceView};
use galley_application::{Rejection, StalenessBound};
use galley_domain::ContentPieceId;
use galley_storage::content_pieces::size as viewed_size;

use super::format::{FormatParameters, ResponseFormat};
use crate::app::App;
use crate::extract::actor::{Actor, ReadContentPieces};
use crate::extract::query::{Query, RequestedId};
use crate::problem::Problem;
use crate::respond::{large_response, response};

/// Get a content piece
#[utoipa::path(
    get,
    path = "/content-pieces",
    operation_id = "getContentPiece",
    params(("id" = schemas::ContentPieceId, Query), FormatParameters),
    responses((status = 200, body = ContentPieceBody<'_>)),
)]
pub(crate) async fn handle(
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
    let content = format.content.is_some();
    let caller = actor.stale_caller(staleness);
    let PieceView { piece: viewed, referenced } =
        content_pieces::get(&caller, id.get()?, variant, content).await?;
    let size = viewed_size(&viewed);
    let space = large_response::reserve(&app, actor.workspace, size)?;
    let (shown, space) = format.render(&app, vec![viewed], space, "contentFormat").await?;
    let [one] = &shown[..] else { unreachable!("one piece is shown as one") };
    let made = large_response::json(&app, space, &one.body(&referenced))?;
    let made = made.ok_or_else(|| {
        Rejection::response_too_large("contentFormat", app.limits().response_size_limit)
    })?;
    Ok(response::reserved_resource(one.piece.version, made))
}
