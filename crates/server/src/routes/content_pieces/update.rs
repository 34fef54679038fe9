//! `PUT /content-pieces`

use galley_api_types::content::ContentFormat;
use galley_api_types::content_piece::{ContentPieceBody, PieceFieldsChange};
use galley_api_types::dry_run::DryRunBody;
use galley_api_types::request::{Fields, Parsed, References, RequestBody, ResourceId};
use galley_application::content_input::{ContentInput, ConvertedContent};
use galley_application::operations::content_pieces::{self, ContentPieceUpdate};
use galley_application::{Caller, Error};
use galley_domain::content_piece::ContentPieceChange;
use galley_domain::revision::RevisionNote;
use galley_domain::variant::VariantRef;
use galley_domain::{ContentGroupId, ContentPieceId};
use serde_json::value::RawValue;

use crate::extract::actor::WriteContentPieces;
use crate::extract::body::JsonBody;
use crate::extract::prefer::Prefer;
use crate::extract::query::RequestedId;
use crate::extract::request;
use crate::respond::large_response;
use crate::routes::content_pieces::input::{self, DryRunParameter, PieceContent};
use crate::routes::prelude::*;

/// Change a content piece
///
/// Absent fields stay unchanged, and null clears an optional field. A new `contentGroupId` moves
/// the piece to the end of the workspace's list, or directly after `referenceId`.
#[utoipa::path(
    put,
    path = "/content-pieces",
    operation_id = "updateContentPiece",
    params(DryRunParameter),
    request_body = PieceFieldsChange,
    responses(
        (status = 200, body = ContentPieceBody<'_>),
        (status = 400, description = "unknown_reference, content_too_deep, content_too_complex"),
        (status = 409, description = "slug_taken"),
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
    let (size, size_limit) = (body.bytes.len(), app.limits().content_size_limit);
    let parsed = app.run_by_size(size, move || read(body, size_limit)).await?;
    let ParsedPieceUpdate { update, mut fields } = parsed;
    fields.add_issues(query.into_issues());
    let (id, variant, change) = request::finish(actor.caller(), fields, update).await?;
    let variant = variant.map(RequestedId::get).transpose()?;
    let id = id.ok_or_else(Error::not_found)?;
    let (content, warnings) = match change.content {
        Some(Some(content)) => {
            let PieceContent { input, converted } = content;
            let converted =
                unchanged_content(&app, actor.caller(), id, variant.as_ref(), input, converted);
            let ConvertedContent { tree, warnings } = converted.await?;
            (Some(Some(tree)), Some(warnings))
        }
        Some(None) => (Some(None), None),
        None => (None, None),
    };
    let update = ContentPieceUpdate {
        id,
        variant,
        change: change.fields,
        content_group_id: change.content_group_id,
        reference_id: change.reference_id,
        content,
        is_exact: false,
        is_autosave: change.is_autosave,
        note: change.note,
    };
    if is_dry {
        let content = content_pieces::update_dry(actor.caller(), update, expected).await?;
        let content = RawValue::from_string(content).expect("a tree is JSON");
        let body = DryRunBody::new(&content, warnings.as_deref().unwrap_or_default());
        return large_response::resource(&app, actor.workspace, 0, &body, "content");
    }
    let updated = content_pieces::update(actor.caller(), update, expected).await?;
    let (version, whole) = (updated.piece.version, updated.body());
    Ok(match &warnings {
        Some(warnings) => {
            let shown = updated.body().with_conversion_warnings(warnings);
            response::updated_with_warnings(prefer, version, &whole, warnings.len(), &shown)
        }
        None => response::updated(prefer, version, &whole),
    })
}

/// Returns the stored tree if the input is its rendering, so that the update leaves it unchanged.
/// Otherwise returns the converted content.
async fn unchanged_content(
    app: &App,
    caller: &Caller,
    id: ContentPieceId,
    variant: Option<&VariantRef>,
    input: ContentInput,
    converted: ConvertedContent,
) -> Result<ConvertedContent, Problem> {
    if input.format == ContentFormat::Json {
        return Ok(converted);
    }
    let stored = content_pieces::content(caller, id, variant.cloned()).await?;
    let Some(stored) = stored.filter(|stored| *stored != converted.tree) else {
        return Ok(converted);
    };
    let size = stored.len();
    let compare = move || {
        if input.is_rendering_of(&stored, &converted) {
            // Nothing is converted, so nothing is lost.
            ConvertedContent { tree: stored, warnings: Vec::new() }
        } else {
            converted
        }
    };
    Ok(app.run_by_size(size, compare).await?)
}

/// The parsed request body.
struct ParsedPieceUpdate {
    /// The piece, the variant if one is named, and the change; an error if a field has an issue.
    update: Parsed<(Option<ContentPieceId>, Option<RequestedId<VariantRef>>, ParsedPieceChange)>,
    fields: Fields,
}

/// The change of a piece.
struct ParsedPieceChange {
    fields: ContentPieceChange,
    content_group_id: Option<ContentGroupId>,
    reference_id: Option<Option<ContentPieceId>>,
    content: Option<Option<PieceContent>>,
    is_autosave: bool,
    note: Option<RevisionNote>,
}

fn read(body: JsonBody, size_limit: usize) -> ParsedPieceUpdate {
    let mut body = input::normalized(body);
    let content = input::content(&mut body, size_limit);
    let mut fields = body.fields;
    let id = ContentPieceId::parse_id(&mut fields);
    let variant = fields.optional::<String>("variant");
    let variant = variant.map(|name| name.filter(|name| !name.is_empty()));
    // A variant with an issue counts as named, so that it causes no further issues.
    if !matches!(variant, Ok(None)) {
        fields.accept_null_overrides();
    }
    let description = fields.clearable("description");
    let description = description.and_then(|html| match html {
        Some(html) => input::description(&mut fields, html).map(Some),
        None => Ok(None),
    });
    let autosave = fields.replacement::<bool>("autosave");
    let note = fields.optional::<RevisionNote>("note");
    let piece = PieceFieldsChange::parse(&mut fields);
    let change = piece.and_then(|piece| {
        Ok(ParsedPieceChange {
            fields: ContentPieceChange {
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
                tags: piece.tags.map(|tags| tags.map(|References(tags)| tags)),
                members: piece.members.map(|members| members.map(|References(members)| members)),
            },
            content_group_id: piece.content_group_id,
            reference_id: piece.reference_id,
            content: content?,
            is_autosave: autosave?.unwrap_or(false),
            note: note?,
        })
    });
    let variant = variant.map(|name| name.map(|name| RequestedId::new(name.parse().ok())));
    let update = id.and_then(|id| Ok((id, variant?, change?)));
    ParsedPieceUpdate { update, fields }
}
