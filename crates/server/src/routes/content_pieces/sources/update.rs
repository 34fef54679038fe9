//! `PUT /content-pieces/sources`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::problem::{Issue, Step};
use galley_application::operations::import_sources::{self, NewSource};
use galley_domain::import_source::{ImportSource, SourceHash};
use galley_domain::variant::VariantRef;
use galley_domain::{ContentPieceId, Invalid};
use serde_json::{Map, Value};

use super::schema;
use crate::app::App;
use crate::extract::actor::{Actor, WriteContentPieces};
use crate::extract::body::JsonBody;
use crate::extract::fields::{Fields, known_reference, objects, text};
use crate::problem::Problem;
use crate::respond::response;

/// The limit on sources in one request.
const SOURCES_MAX: usize = 100;

/// Record the sources of content pieces
///
/// The request is atomic: if one source is rejected, none is recorded. The pieces keep their
/// versions, and no event is created.
#[utoipa::path(
    put,
    path = "/content-pieces/sources",
    operation_id = "updateContentPieceSources",
    request_body = schema::ContentPieceSourcesUpdate,
    responses((status = 400, description = "unknown_reference")),
)]
pub(crate) async fn handle(
    _: State<App>,
    actor: Actor<WriteContentPieces>,
    JsonBody { mut fields, .. }: JsonBody,
) -> Result<Response, Problem> {
    let objects = fields.required("sources", objects(SOURCES_MAX)).unwrap_or_default();
    let mut new = Vec::with_capacity(objects.len());
    for (index, object) in objects.into_iter().enumerate() {
        match read(object) {
            Ok(source) => new.push(source),
            Err(issues) => {
                let place = [Step::Field("sources".to_owned()), Step::Item(index)];
                fields.add_issues(issues.into_iter().map(|issue| issue.prefixed(&place)).collect());
            }
        }
    }
    fields.finish()?;
    import_sources::save(actor.caller(), new).await?;
    Ok(response::no_content())
}

fn read(object: Map<String, Value>) -> Result<NewSource, Vec<Issue>> {
    let mut fields = Fields::new(object);
    let piece =
        fields.required("contentPieceId", known_reference::<ContentPieceId>("content piece"));
    let variant = fields.optional("variant", known_reference::<VariantRef>("variant"));
    let source_hash = fields.required("sourceHash", text(hash));
    let imported_hash = fields.required("importedHash", text(hash));
    match (piece, source_hash, imported_hash) {
        (Some(piece), Some(source_hash), Some(imported_hash)) if !fields.has_issues() => {
            let source = ImportSource { source_hash, imported_hash };
            Ok(NewSource { piece, variant, source })
        }
        _ => Err(fields.into_issues()),
    }
}

fn hash(text: String) -> Result<SourceHash, Invalid> {
    SourceHash::parse(text)
}
