//! `POST /content-pieces`

use galley_api_types::content_piece::{ContentPieceBody, NewPieceFields};
use galley_api_types::dry_run::DryRunBody;
use galley_api_types::request::{Fields, Parsed, References, RequestBody};
use galley_application::operations::content_pieces::{self, NewContentPiece, StoredPiece};
use galley_content::{ConversionWarning, Tree};
use galley_domain::content_piece::ContentPieceFields;
use serde_json::value::RawValue;

use crate::extract::actor::WriteContentPieces;
use crate::extract::body::JsonBody;
use crate::extract::idempotency_key::IdempotencyKey;
use crate::extract::prefer::Prefer;
use crate::extract::request;
use crate::respond::large_response;
use crate::routes::content_pieces::input::DryRunParameter;
use crate::routes::content_pieces::{PATH, input};
use crate::routes::prelude::*;

/// Create a content piece
///
/// Without `referenceId`, the piece is appended to the workspace's list, and so is the last of its
/// group.
#[utoipa::path(
    post,
    path = "/content-pieces",
    operation_id = "createContentPiece",
    params(DryRunParameter),
    request_body = NewPieceFields,
    responses(
        (status = 201, body = ContentPieceBody<'_>),
        (status = 400, description = "unknown_reference, content_too_deep, content_too_complex"),
        (status = 409, description = "slug_taken"),
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
    let (bytes, size_limit) = (body.bytes.clone(), app.limits().content_size_limit);
    let parsed = app.run_by_size(bytes.len(), move || read(body, size_limit)).await?;
    let ParsedPiece { new, mut fields, warnings } = parsed;
    fields.add_issues(query.into_issues());
    let new = request::finish(actor.caller(), fields, new).await?;
    if is_dry {
        let content = RawValue::from_string(new.content.clone()).expect("a tree is JSON");
        content_pieces::create_dry(actor.caller(), new).await?;
        let body = DryRunBody::new(&content, warnings.as_deref().unwrap_or_default());
        return large_response::resource(&app, actor.workspace, 0, &body, "content");
    }
    let respond = Respond::new(move |stored: &StoredPiece| {
        let (id, version) = (stored.piece.id, stored.piece.version);
        let created = created::created(prefer, id, version, &stored.body()).with_location(PATH, id);
        match &warnings {
            Some(warnings) => {
                let whole = stored.body().with_conversion_warnings(warnings);
                created::with_conversion_warnings(created, warnings.len(), &whole)
            }
            None => created,
        }
    });
    let key = key.for_body(&bytes);
    let response = content_pieces::create(actor.caller(), new, key, respond).await?;
    Ok(created::respond(response))
}

/// The parsed request body.
pub(super) struct ParsedPiece {
    /// The piece to create, unless a field has an issue.
    pub(super) new: Parsed<NewContentPiece>,
    pub(super) fields: Fields,
    /// The conversion warnings, if the body has content.
    pub(super) warnings: Option<Vec<ConversionWarning>>,
}

pub(super) fn read(body: JsonBody, size_limit: usize) -> ParsedPiece {
    let mut body = input::normalized(body);
    let content = input::content(&mut body, size_limit).map(Option::flatten);
    let mut fields = body.fields;
    let description = fields.optional("description");
    let description = description.and_then(|html| input::description(&mut fields, html));
    let piece = NewPieceFields::parse(&mut fields);
    let (content, warnings) = match content {
        Ok(Some(content)) => (Ok(content.converted.tree), Some(content.converted.warnings)),
        Ok(None) => (Ok(Tree::empty().to_json()), None),
        Err(recorded) => (Err(recorded), None),
    };
    let new = piece.and_then(|piece| {
        let References(tags) = piece.tags;
        let References(members) = piece.members;
        Ok(NewContentPiece {
            fields: ContentPieceFields {
                date: piece.date,
                title: piece.title,
                description: description?,
                slug: piece.slug,
                cover_url: piece.cover_url,
                cover_alt: piece.cover_alt,
                cover_width: piece.cover_width,
                canonical_link: piece.canonical_link,
                filename: piece.filename,
                custom_data: piece.custom_data,
                tags,
                members,
            },
            content_group_id: piece.content_group_id,
            reference_id: piece.reference_id,
            content: content?,
        })
    });
    ParsedPiece { new, fields, warnings }
}
