//! `GET /content-pieces?id=`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::content_piece::ContentPieceBody;
use galley_api_types::schemas;
use galley_application::operations::variants;
use galley_application::{Error, Rejection, StalenessBound, references};
use galley_domain::ContentPieceId;
use galley_storage::Tx;
use galley_storage::content_pieces::{self, View};

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
    let (id, scope) = (id.get()?, actor.scope());
    let variant = variant.map(RequestedId::get).transpose()?;
    let content = format.content.is_some();
    let read = async move |tx: &Tx<'_>| {
        let workspace = scope.workspace;
        let within = scope.content_groups.as_deref();
        let variant = variants::find_named(tx, &scope, variant.as_ref()).await?;
        let view = View { variant: variant.map(|variant| variant.id), content };
        let found = content_pieces::find_visible(tx, workspace, id, within, view);
        let (piece, tree) = found.await?.ok_or_else(Error::not_found)?;
        let referenced = references::of_pieces(tx, workspace, [&piece].into_iter()).await?;
        Ok::<_, Error>((piece, tree, referenced))
    };
    let (piece, tree, referenced) =
        staleness.read(app.database(), "content_pieces.get", read).await?;
    let viewed = (piece, tree);
    let size = content_pieces::size(&viewed);
    let space = large_response::reserve(&app, actor.workspace, size)?;
    let (shown, space) = format.render(&app, vec![viewed], space, "contentFormat").await?;
    let [one] = &shown[..] else { unreachable!("one piece is shown as one") };
    let made = large_response::json(&app, space, &one.body(&referenced))?;
    let made = made.ok_or_else(|| {
        Rejection::response_too_large("contentFormat", app.limits().response_size_limit)
    })?;
    Ok(response::reserved_resource(one.piece.version, made))
}
