//! `PUT /content-pieces`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::content_piece::ContentPieceBody;
use galley_api_types::dry_run::DryRunBody;
use galley_application::operations::content_pieces::{self, ContentPieceUpdate, RequestReferences};
use galley_application::{VersionPrecondition, sanitize};
use galley_content::ConversionWarning;
use galley_domain::content_piece::{ContentPieceChange, Slug, Title};
use galley_domain::text::{ShortText, WebReference};
use galley_domain::variant::VariantRef;
use galley_domain::{ContentGroupId, ContentPieceId};
use serde_json::value::RawValue;

use super::{input, schema};
use crate::app::App;
use crate::extract::actor::{Actor, WriteContentPieces};
use crate::extract::body::JsonBody;
use crate::extract::fields::{Fields, each_once, reference, text, time};
use crate::extract::prefer::Prefer;
use crate::extract::query::{Query, RequestedId};
use crate::problem::Problem;
use crate::respond::{large_response, response};

/// Change a content piece
///
/// Absent fields stay unchanged, and null clears an optional field. A new `contentGroupId` moves
/// the piece to the end of the workspace's list, or directly after `referenceId`.
#[utoipa::path(
    put,
    path = "/content-pieces",
    operation_id = "updateContentPiece",
    request_body = schema::ContentPieceChangeSchema,
    responses(
        (status = 200, body = ContentPieceBody<'_>),
        (status = 400, description = "unknown_reference, content_too_deep, content_too_complex"),
    ),
)]
pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<WriteContentPieces>,
    prefer: Prefer,
    expected: VersionPrecondition,
    mut query: Query,
    body: JsonBody,
) -> Result<Response, Problem> {
    let is_dry = query.boolean("dryRun");
    let (reader, size) = (app.clone(), body.bytes.len());
    let mut draft = app.run_by_size(size, move || read(&reader, body, is_dry)).await?;
    draft.fields.add_issues(query.into_issues());
    input::finish(actor.caller(), draft.fields, draft.references, ()).await?;
    let variant = draft.variant.map(RequestedId::get).transpose()?;
    let update = ContentPieceUpdate {
        id: draft.id.get()?,
        variant,
        change: draft.change,
        content_group_id: draft.content_group_id,
        reference_id: draft.reference_id,
        content: draft.content,
    };
    if is_dry {
        let content = content_pieces::update_dry(actor.caller(), update, expected).await?;
        let content = RawValue::from_string(content).expect("a tree is JSON");
        let body = DryRunBody::new(&content, &draft.losses);
        return large_response::resource(&app, actor.workspace, 0, &body, "content");
    }
    let kept = content_pieces::update(actor.caller(), update, expected).await?;
    Ok(response::updated(prefer, kept.piece.version, &kept.body()))
}

/// The parsed request body.
struct ParsedPieceUpdate {
    id: RequestedId<ContentPieceId>,
    variant: Option<RequestedId<VariantRef>>,
    change: ContentPieceChange,
    content_group_id: Option<ContentGroupId>,
    reference_id: Option<Option<ContentPieceId>>,
    content: Option<Option<String>>,
    fields: Fields,
    references: RequestReferences,
    /// The conversion warnings of the content. They are collected for dry runs only.
    losses: Vec<ConversionWarning>,
}

fn read(app: &App, body: JsonBody, reports: bool) -> ParsedPieceUpdate {
    let mut fields = input::normalized(body);
    let id = RequestedId::new(fields.required("id", reference::<ContentPieceId>).flatten());
    let variant = fields.optional("variant", text(Ok)).filter(|name: &String| !name.is_empty());
    // In a variant every field may be null, as the piece's own value then applies.
    let nullable = variant.is_some();
    let tags = fields.clearable_if(nullable, "tags", input::tags);
    let members = fields.clearable_if(nullable, "members", input::members);
    let change = ContentPieceChange {
        date: fields.clearable("date", text(time)),
        title: fields.clearable_if(nullable, "title", text(Title::parse)),
        description: fields.clearable("description", text(sanitize::description)),
        slug: fields.clearable_if(nullable, "slug", text(Slug::parse)),
        cover_url: fields.clearable("coverUrl", text(WebReference::parse)),
        cover_alt: fields.clearable("coverAlt", text(ShortText::parse)),
        cover_width: fields.clearable("coverWidth", text(ShortText::parse)),
        canonical_link: fields.clearable("canonicalLink", text(WebReference::parse)),
        filename: fields.clearable("filename", text(ShortText::parse)),
        custom_data: fields.clearable("customData", text(input::custom_data)),
        tags: tags.clone().map(|tags| tags.map(each_once)),
        members: members.clone().map(|members| members.map(each_once)),
    };
    let content_group_id = fields.replacement("contentGroupId", input::content_group);
    let reference_id = fields.clearable("referenceId", input::reference_piece);
    let mut losses = Vec::new();
    let reported = reports.then_some(&mut losses);
    let content = match fields.clearable("content", text(Ok)) {
        Some(Some(html)) => input::content(app, &mut fields, Some(html), reported).map(Some),
        unset => unset.map(|_| None),
    };
    let references = RequestReferences {
        tags: tags.flatten().unwrap_or_default(),
        members: members.flatten().unwrap_or_default(),
        content_group_id,
        reference_id: reference_id.flatten(),
    };
    let variant = variant.map(|name| RequestedId::new(name.parse().ok()));
    ParsedPieceUpdate {
        id,
        variant,
        change,
        content_group_id,
        reference_id,
        content,
        fields,
        references,
        losses,
    }
}
