//! `POST /content-pieces/batch`

use galley_api_types::content_piece::NewContentPieces;
use galley_api_types::conversion_warning::ConversionWarningBody;
use galley_api_types::problem::Step;
use galley_api_types::request::{Fields, RequestBody};
use galley_application::operations::content_pieces::{self, NewContentPiece, StoredPiece};
use galley_application::{Caller, Error, Rejection};
use galley_content::ConversionWarning;
use galley_domain::{ContentPieceId, Invalid};
use serde::Serialize;
use utoipa::ToSchema;

use crate::extract::actor::WriteContentPieces;
use crate::extract::body::JsonBody;
use crate::extract::idempotency_key::IdempotencyKey;
use crate::extract::json;
use crate::routes::content_pieces::create::{self, ParsedPiece};
use crate::routes::content_pieces::input::DryRunParameter;
use crate::routes::prelude::*;

/// The created pieces.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CreatedContentPieces)]
pub(crate) struct CreatedPiecesBody<'a> {
    /// The pieces, in the order of the request.
    pieces: Vec<CreatedPiece<'a>>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CreatedContentPiece)]
#[serde(rename_all = "camelCase")]
struct CreatedPiece<'a> {
    #[schema(value_type = schemas::ContentPieceId)]
    id: ContentPieceId,
    /// The parts of the sent content that the tree lacks. Present only for pieces with content.
    #[schema(value_type = Vec<ConversionWarningBody<'_>>, required = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    conversion_warnings: Option<Vec<ConversionWarningBody<'a>>>,
}

/// Create several content pieces
///
/// The request is atomic: if one piece is rejected, none is created. Pieces without `referenceId`
/// are appended to the workspace's list, in the order of the request.
#[utoipa::path(
    post,
    path = "/content-pieces/batch",
    operation_id = "createContentPieces",
    params(DryRunParameter),
    request_body = NewContentPieces,
    responses(
        (status = 201, body = CreatedPiecesBody<'_>),
        (status = 400, description = "unknown_reference, content_too_deep, content_too_complex"),
        (status = 409, description = "slug_taken"),
    ),
)]
pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<WriteContentPieces>,
    key: IdempotencyKey,
    mut query: Query,
    body: JsonBody,
) -> Result<Response, Problem> {
    if query.boolean("dryRun") {
        let invalid = Invalid::new("unsupported", "is supported only for a single piece");
        query.add_issue("dryRun", &invalid);
    }
    let (bytes, size_limit) = (body.bytes.clone(), app.limits().content_size_limit);
    let (mut fields, drafts) = app.run_on_cpu_pool(move || read(body, size_limit)).await?;
    fields.add_issues(query.into_issues());
    let (new, warnings) = finish(actor.caller(), fields, drafts).await?;
    let respond = Respond::new(move |stored: &Vec<StoredPiece>| {
        let pieces = stored.iter().zip(&warnings).map(|(stored, warnings)| CreatedPiece {
            id: stored.piece.id,
            conversion_warnings: warnings
                .as_ref()
                .map(|warnings| warnings.iter().map(ConversionWarningBody::from).collect()),
        });
        let pieces = pieces.collect();
        let count = warnings.iter().flatten().map(Vec::len).sum();
        created::created_several(&CreatedPiecesBody { pieces }, count)
    });
    let key = key.for_body(&bytes);
    let response = content_pieces::create_several(actor.caller(), new, key, respond).await?;
    Ok(created::respond(response))
}

fn read(body: JsonBody, size_limit: usize) -> (Fields, Vec<ParsedPiece>) {
    let JsonBody { mut fields, bytes } = body;
    let Ok(NewContentPieces { pieces }) = NewContentPieces::parse(&mut fields) else {
        return (fields, Vec::new());
    };
    // Each piece keeps its part of the JSON text, as custom data is stored with its numbers as
    // sent.
    let texts = json::texts_of_items(&bytes, "pieces");
    let drafts = pieces.0.into_iter().zip(texts).map(|(object, text)| {
        let bytes = bytes.slice_ref(text.as_bytes());
        create::read(JsonBody { fields: Fields::new(object), bytes }, size_limit)
    });
    let drafts = drafts.collect();
    (fields, drafts)
}

/// The conversion warnings of each piece, if it has content.
type WarningsOfPieces = Vec<Option<Vec<ConversionWarning>>>;

/// Returns the pieces with their conversion warnings, or rejects the request with the issues of all
/// pieces. The issues include references that don't exist.
async fn finish(
    caller: &Caller,
    fields: Fields,
    drafts: Vec<ParsedPiece>,
) -> Result<(Vec<NewContentPiece>, WarningsOfPieces), Error> {
    let has_issues = |draft: &ParsedPiece| draft.new.is_err() || draft.fields.has_issues();
    if !fields.has_issues() && !drafts.iter().any(has_issues) {
        let valid = drafts.into_iter().filter_map(|draft| Some((draft.new.ok()?, draft.warnings)));
        return Ok(valid.unzip());
    }
    let (issues_of_pieces, references): (Vec<_>, Vec<_>) =
        drafts.into_iter().map(|draft| draft.fields.into_issues_and_references()).unzip();
    let missing = content_pieces::missing_references_of_several(caller, references).await?;
    let (mut issues, _) = fields.into_issues_and_references();
    for (index, (own, missing)) in issues_of_pieces.into_iter().zip(missing).enumerate() {
        let place = [Step::Field("pieces".to_owned()), Step::Item(index)];
        issues.extend(own.into_iter().chain(missing).map(|issue| issue.prefixed(&place)));
    }
    Err(Rejection::of_issues(issues).into())
}
