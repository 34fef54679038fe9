//! `POST /content-pieces`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::content_piece::ContentPieceBody;
use galley_api_types::dry_run::DryRunBody;
use galley_application::operations::content_pieces::{
    self, NewContentPiece, RequestReferences, StoredPiece,
};
use galley_application::{Respond, sanitize};
use galley_content::{ConversionWarning, Tree};
use galley_domain::content_piece::{ContentPieceFields, Slug, Title};
use galley_domain::text::{ShortText, WebReference};
use serde_json::value::RawValue;

use super::{PATH, input, schema};
use crate::app::App;
use crate::extract::actor::{Actor, WriteContentPieces};
use crate::extract::body::JsonBody;
use crate::extract::fields::{Fields, each_once, text, time};
use crate::extract::idempotency_key::IdempotencyKey;
use crate::extract::prefer::Prefer;
use crate::extract::query::Query;
use crate::problem::Problem;
use crate::respond::{created, large_response};

/// Create a content piece
///
/// Without `referenceId`, the piece is appended to the workspace's list, and so is the last of its
/// group.
#[utoipa::path(
    post,
    path = "/content-pieces",
    operation_id = "createContentPiece",
    request_body = schema::NewContentPieceSchema,
    responses(
        (status = 201, body = ContentPieceBody<'_>),
        (status = 400, description = "unknown_reference, content_too_deep, content_too_complex"),
    ),
)]
pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<WriteContentPieces>,
    prefer: Prefer,
    key: IdempotencyKey,
    mut query: Query,
    body: JsonBody,
) -> Result<Response, Problem> {
    let is_dry = query.boolean("dryRun");
    let (reader, bytes) = (app.clone(), body.bytes.clone());
    let size = bytes.len();
    let draft = app.run_by_size(size, move || read(&reader, body, is_dry)).await?;
    let ParsedPiece { new, mut fields, references, losses } = draft;
    fields.add_issues(query.into_issues());
    let new = input::finish(actor.caller(), fields, references, new).await?;
    if is_dry {
        let content = RawValue::from_string(new.content.clone()).expect("a tree is JSON");
        content_pieces::create_dry(actor.caller(), new).await?;
        let body = DryRunBody::new(&content, &losses);
        return large_response::resource(&app, actor.workspace, 0, &body, "content");
    }
    let respond = Respond::new(move |stored: &StoredPiece| {
        let (id, version) = (stored.piece.id, stored.piece.version);
        created::created(prefer, id, version, &stored.body()).with_location(PATH, id)
    });
    let key = key.for_body(&bytes);
    let response = content_pieces::create(actor.caller(), new, key, respond).await?;
    Ok(created::respond(response))
}

/// The parsed request body.
pub(super) struct ParsedPiece {
    /// The piece to create, or `None` if its title, slug or group is missing or invalid.
    pub(super) new: Option<NewContentPiece>,
    pub(super) fields: Fields,
    pub(super) references: RequestReferences,
    /// The conversion warnings of the content. They are collected for dry runs only.
    losses: Vec<ConversionWarning>,
}

pub(super) fn read(app: &App, body: JsonBody, reports: bool) -> ParsedPiece {
    let mut fields = input::normalized(body);
    let title = fields.required("title", text(Title::parse));
    let slug = fields.required("slug", text(Slug::parse));
    let tags = fields.required("tags", input::tags).unwrap_or_default();
    let members = fields.required("members", input::members).unwrap_or_default();
    let content_group_id = fields.required("contentGroupId", input::content_group);
    let date = fields.optional("date", text(time));
    let description = fields.optional("description", text(sanitize::description));
    let cover_url = fields.optional("coverUrl", text(WebReference::parse));
    let cover_alt = fields.optional("coverAlt", text(ShortText::parse));
    let cover_width = fields.optional("coverWidth", text(ShortText::parse));
    let canonical_link = fields.optional("canonicalLink", text(WebReference::parse));
    let filename = fields.optional("filename", text(ShortText::parse));
    let custom_data = fields.optional("customData", text(input::custom_data));
    let reference_id = fields.optional("referenceId", input::reference_piece);
    let html = fields.optional("content", text(Ok));
    let mut losses = Vec::new();
    let content = input::content(app, &mut fields, html, reports.then_some(&mut losses));
    let references = RequestReferences {
        tags: tags.clone(),
        members: members.clone(),
        content_group_id,
        reference_id,
    };
    let new = match (title, slug, content_group_id) {
        (Some(title), Some(slug), Some(content_group_id)) => Some(NewContentPiece {
            fields: ContentPieceFields {
                date,
                title,
                description,
                slug,
                cover_url,
                cover_alt,
                cover_width,
                canonical_link,
                filename,
                custom_data,
                tags: each_once(tags),
                members: each_once(members),
            },
            content_group_id,
            reference_id,
            content: content.unwrap_or_else(|| Tree::empty().to_json()),
        }),
        _ => None,
    };
    ParsedPiece { new, fields, references, losses }
}
