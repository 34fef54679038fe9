//! `GET /content-pieces?id=`

use axum::extract::State;
use axum::response::Response;
use galley_domain::ContentPieceId;
use galley_storage::{Tx, content_pieces};

use super::format::Format;
use crate::http::actor::{Actor, ReadContentPieces};
use crate::http::app::App;
use crate::http::error::Error;
use crate::http::query::Query;
use crate::http::response;
use crate::representation::content_piece::{ContentPieceBody, Referenced};

pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<ReadContentPieces>,
    mut query: Query,
) -> Result<Response, Error> {
    let id = query.id::<ContentPieceId>();
    let format = Format::read(&mut query);
    let variant = query.text("variant");
    query.finish()?;
    let (id, scope) = (id.get()?, actor.scope());
    if variant.is_some() {
        return Err(Error::not_found());
    }
    let with_content = format.content.is_some();
    let read = async move |tx: &Tx<'_>| {
        let workspace = scope.workspace;
        let found = if with_content {
            content_pieces::find_with_content(tx, workspace, id).await?
        } else {
            content_pieces::find(tx, workspace, id).await?.map(|piece| (piece, String::new()))
        };
        let (piece, tree) = found.ok_or_else(Error::not_found)?;
        scope.check(tx, piece.content_group_id).await?;
        let referenced = Referenced::of(tx, workspace, [&piece].into_iter()).await?;
        Ok::<_, Error>((piece, tree, referenced))
    };
    let (piece, tree, referenced) = app.database().read("content_pieces.get", read).await?;
    let content = format.content(&app, Some(tree)).await?;
    let description = format.description(&piece);
    let body =
        ContentPieceBody::new(&piece, &referenced, description.as_deref(), content.as_deref());
    Ok(response::ok(&body))
}
