//! `PUT /content-pieces`

use axum::extract::State;
use axum::response::Response;
use galley_content::Tree;
use galley_domain::ContentPieceId;
use galley_domain::content_piece::{ContentPieceChange, Slug, Title};
use galley_domain::text::{ShortText, WebReference};
use galley_storage::WriteTx;

use super::input;
use crate::http::actor::{Actor, WriteContentPieces};
use crate::http::app::App;
use crate::http::body::JsonBody;
use crate::http::error::Error;
use crate::http::fields::{reference, text, time};
use crate::http::query::Id;
use crate::http::response;
use crate::operations::content_pieces::{self, ContentPieceUpdate};

pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<WriteContentPieces>,
    body: JsonBody,
) -> Result<Response, Error> {
    let update = read(&app, body).await?;
    let (scope, environment) = (actor.scope(), app.environment().clone());
    let write = async move |tx: &WriteTx<'_>| {
        content_pieces::update(tx, &environment, &scope, &update).await.map(drop)
    };
    app.database().write("content_pieces.update", write).await?;
    Ok(response::no_content())
}

async fn read(app: &App, body: JsonBody) -> Result<ContentPieceUpdate, Error> {
    let mut fields = input::normalized(body);
    let id = Id::new(fields.required("id", reference::<ContentPieceId>).flatten());
    let change = ContentPieceChange {
        date: fields.clearable("date", text(time)),
        title: fields.replacement("title", text(Title::parse)),
        description: fields.clearable("description", text(input::description)),
        slug: fields.replacement("slug", text(Slug::parse)),
        cover_url: fields.clearable("coverUrl", text(WebReference::parse)),
        cover_alt: fields.clearable("coverAlt", text(ShortText::parse)),
        cover_width: fields.clearable("coverWidth", text(ShortText::parse)),
        canonical_link: fields.clearable("canonicalLink", text(WebReference::parse)),
        filename: fields.clearable("filename", text(ShortText::parse)),
        custom_data: fields.clearable("customData", text(input::custom_data)),
        tags: fields.replacement("tags", input::tags),
        members: fields.replacement("members", input::members),
    };
    let content_group_id = fields.replacement("contentGroupId", input::content_group);
    let reference_id = fields.clearable("referenceId", input::reference_piece);
    let variant = fields.optional("variant", text(Ok));
    let html = fields.clearable("content", text(Ok));
    let content = match html {
        Some(Some(html)) => input::content(app, &mut fields, Some(html)).await,
        Some(None) => Some(Tree::empty().to_json()),
        None => None,
    };
    fields.finish()?;
    if variant.is_some_and(|variant| !variant.is_empty()) {
        return Err(Error::not_found());
    }
    Ok(ContentPieceUpdate { id: id.get()?, change, content_group_id, reference_id, content })
}
