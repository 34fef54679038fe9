//! `/content-pieces/sources`: the import sources of pieces.

use galley_api_types::import_source::{
    ContentPieceSourcesUpdate, NewImportSource, PieceSourcesBody,
};
use galley_api_types::problem::Step;
use galley_api_types::request::{Fields, RequestBody};
use galley_application::Error;
use galley_application::operations::import_sources::{self, NewSource, SourceListRequest};
use galley_domain::ContentPieceId;
use galley_domain::import_source::ImportSource;
use galley_domain::text::ShortText;
use utoipa::IntoParams;

use crate::extract::actor::{ReadContentPieces, WriteContentPieces};
use crate::extract::body::JsonBody;
use crate::extract::{pagination, request};
use crate::resources::overload;
use crate::routes::content_pieces::id_filter::IdFilter;
use crate::routes::prelude::*;

/// The query parameters of the list of sources.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
#[expect(dead_code, reason = "only its description is used")]
struct SourceListParameters {
    /// List the pieces directly in one of these groups: up to 100 identifiers, separated by commas.
    /// The parameter may be repeated.
    content_group_id: Option<String>,
    /// Include the pieces in all groups below these groups.
    #[param(default = false)]
    subtree: Option<bool>,
}

/// List the sources of content pieces
///
/// Returns pieces sorted by identifier, each with the sources that importers recorded. The two
/// hashes of a source show an importer if the source or the piece was changed since the import.
#[utoipa::path(
    get, path = "/content-pieces/sources", operation_id = "listContentPieceSources",
    params(IdPageParams, SourceListParameters),
    responses(
        (status = 200, body = [PieceSourcesBody<'_>]),
        (status = 404, description = "not_found"),
    ),
)]
pub(crate) async fn list(
    actor: Actor<ReadContentPieces>,
    query: Query,
) -> Result<Response, Problem> {
    let mut list = IdListQuery::<ContentPieceId>::parse(query, pagination::PER_PAGE_MAX);
    let query = list.query();
    let groups = IdFilter::read(query, "contentGroupId");
    let subtree = query.boolean("subtree");
    query.finish()?;
    let (mut pieces, sources) = if groups.matches_none() {
        Default::default()
    } else {
        let (groups, page) = (groups.ids, list.page());
        let request = SourceListRequest { groups, subtree, page };
        overload::uncounted(Box::pin(import_sources::list(actor.caller(), request))).await?
    };
    Ok(list.respond(
        &mut pieces,
        |piece| piece.id,
        |piece| PieceSourcesBody {
            id: piece.id,
            content_group_id: piece.content_group_id,
            filename: piece.fields.filename.as_ref().map(ShortText::as_str),
            sources: sources.get(&piece.id).into_iter().flatten().map(Into::into).collect(),
        },
    ))
}

/// Record the sources of content pieces
///
/// The request is atomic: if one source is rejected, none is recorded. The pieces keep their
/// versions, and no event is created.
#[utoipa::path(
    put, path = "/content-pieces/sources", operation_id = "updateContentPieceSources",
    request_body = ContentPieceSourcesUpdate,
    responses((status = 400, description = "unknown_reference")),
)]
pub(crate) async fn update(
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
                let (own, _) = fields.into_issues_and_references();
                issues.extend(own.into_iter().map(|issue| issue.prefixed(&place)));
            }
        }
    }
    Error::reject_issues(issues)?;
    import_sources::save(actor.caller(), new).await?;
    Ok(response::no_content())
}
