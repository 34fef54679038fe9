//! `POST /content-pieces/batch`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::problem::Step;
use galley_api_types::schemas;
use galley_application::operations::content_pieces;
use galley_application::operations::content_pieces::StoredPiece;
use galley_application::{Caller, Error, Respond};
use galley_domain::{ContentPieceId, Invalid};
use serde::Serialize;
use utoipa::ToSchema;

use super::create::{self, ParsedPiece};
use super::schema;
use crate::app::App;
use crate::extract::actor::{Actor, WriteContentPieces};
use crate::extract::body::JsonBody;
use crate::extract::fields::{Fields, objects};
use crate::extract::idempotency_key::IdempotencyKey;
use crate::extract::json;
use crate::extract::query::Query;
use crate::problem::Problem;
use crate::respond::created;

/// The limit on pieces in one request.
const PIECES_MAX: usize = 100;

/// The created pieces.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CreatedContentPieces)]
pub(crate) struct CreatedPiecesBody {
    /// The pieces, in the order of the request.
    pieces: Vec<CreatedPiece>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CreatedContentPiece)]
struct CreatedPiece {
    #[schema(value_type = schemas::ContentPieceId)]
    id: ContentPieceId,
}

/// Create several content pieces
///
/// The request is atomic: if one piece is rejected, none is created. Pieces without `referenceId`
/// are appended to the workspace's list, in the order of the request.
#[utoipa::path(
    post,
    path = "/content-pieces/batch",
    operation_id = "createContentPieces",
    request_body = schema::NewContentPieces,
    responses(
        (status = 201, body = CreatedPiecesBody),
        (status = 400, description = "unknown_reference, content_too_deep, content_too_complex"),
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
    let (reader, bytes) = (app.clone(), body.bytes.clone());
    let (mut fields, drafts) = app.run_on_cpu_pool(move || read(&reader, body)).await?;
    fields.add_issues(query.into_issues());
    let drafts = reject_all(actor.caller(), fields, drafts).await?;
    let new: Vec<_> = drafts.into_iter().filter_map(|draft| draft.new).collect();
    let respond = Respond::new(|stored: &Vec<StoredPiece>| {
        let pieces = stored.iter().map(|stored| CreatedPiece { id: stored.piece.id }).collect();
        created::created_several(&CreatedPiecesBody { pieces })
    });
    let key = key.for_body(&bytes);
    let response = content_pieces::create_several(actor.caller(), new, key, respond).await?;
    Ok(created::respond(response))
}

/// Returns the path of a piece in the request body.
fn path_of_piece(index: usize) -> [Step; 2] {
    [Step::Field("pieces".to_owned()), Step::Item(index)]
}

fn read(app: &App, body: JsonBody) -> (Fields, Vec<ParsedPiece>) {
    let JsonBody { mut fields, bytes } = body;
    let Some(objects) = fields.required("pieces", objects(PIECES_MAX)) else {
        return (fields, Vec::new());
    };
    // Each piece keeps its own JSON text, as custom data is stored with its numbers as written.
    let texts = json::texts_of_items(&bytes, "pieces");
    let drafts = objects.into_iter().zip(texts).map(|(object, text)| {
        let bytes = bytes.slice_ref(text.as_bytes());
        create::read(app, JsonBody { fields: Fields::new(object), bytes }, false)
    });
    let drafts = drafts.collect();
    (fields, drafts)
}

/// Returns the drafts, or rejects the request with the issues of all pieces. The issues include
/// references that don't exist.
async fn reject_all(
    caller: &Caller,
    mut fields: Fields,
    drafts: Vec<ParsedPiece>,
) -> Result<Vec<ParsedPiece>, Error> {
    if fields.has_issues() || drafts.iter().any(|draft| draft.fields.has_issues()) {
        let references = drafts.iter().map(|draft| draft.references.clone()).collect();
        let missing = content_pieces::missing_references_of_several(caller, references).await?;
        for (index, (draft, missing)) in drafts.into_iter().zip(missing).enumerate() {
            let issues = draft.fields.into_issues().into_iter().chain(missing);
            fields.add_issues(issues.map(|issue| issue.prefixed(&path_of_piece(index))).collect());
        }
        fields.finish()?;
        return Ok(Vec::new());
    }
    Ok(drafts)
}
