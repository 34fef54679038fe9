//! `PUT /content-pieces/sources`

use galley_api_types::import_source::{ContentPieceSourcesUpdate, NewImportSource};
use galley_api_types::problem::Step;
use galley_api_types::request::{Fields, RequestBody};
use galley_application::Error;
use galley_application::operations::import_sources::{self, NewSource};
use galley_domain::import_source::ImportSource;

use crate::extract::actor::WriteContentPieces;
use crate::extract::body::JsonBody;
use crate::extract::request;
use crate::routes::prelude::*;

/// Record the sources of content pieces
///
/// The request is atomic: if one source is rejected, none is recorded. The pieces keep their
/// versions, and no event is created.
#[utoipa::path(
    put,
    path = "/content-pieces/sources",
    operation_id = "updateContentPieceSources",
    request_body = ContentPieceSourcesUpdate,
    responses((status = 400, description = "unknown_reference")),
)]
pub(crate) async fn handle(
    actor: Actor<WriteContentPieces>,
    JsonBody { mut fields, .. }: JsonBody,
) -> Result<Response, Problem> {
    let parsed = ContentPieceSourcesUpdate::parse(&mut fields);
    let objects = request::finish(actor.caller(), fields, parsed).await?.sources.0;
    let (mut new, mut issues) = (Vec::with_capacity(objects.len()), Vec::new());
    for (index, object) in objects.into_iter().enumerate() {
        let mut fields = Fields::new(object);
        match NewImportSource::parse(&mut fields) {
            Ok(source) => new.push(NewSource {
                piece: source.content_piece_id,
                variant: source.variant,
                source: ImportSource {
                    source_hash: source.source_hash,
                    imported_hash: source.imported_hash,
                },
            }),
            Err(_) => {
                let place = [Step::Field("sources".to_owned()), Step::Item(index)];
                let (own, _) = fields.into_findings();
                issues.extend(own.into_iter().map(|issue| issue.prefixed(&place)));
            }
        }
    }
    Error::reject_issues(issues)?;
    import_sources::save(actor.caller(), new).await?;
    Ok(response::no_content())
}
