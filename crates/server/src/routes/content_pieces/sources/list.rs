//! `GET /content-pieces/sources`

use axum::response::Response;
use galley_api_types::import_source::PieceSourcesBody;
use galley_application::operations::import_sources::{self, SourceListRequest};
use galley_domain::ContentPieceId;
use galley_domain::text::ShortText;

use super::schema::SourceListParameters;
use crate::extract::actor::{Actor, ReadContentPieces};
use crate::extract::pagination::{self, IdPageParams, PageRequest};
use crate::extract::query::Query;
use crate::problem::Problem;
use crate::resources::overload;
use crate::respond::page_links;
use crate::routes::content_pieces::groups::GroupFilter;

/// List the sources of content pieces
///
/// Returns pieces sorted by identifier, each with the sources that importers recorded. The two
/// hashes of a source show an importer if the source or the piece was changed since the import.
#[utoipa::path(
    get,
    path = "/content-pieces/sources",
    operation_id = "listContentPieceSources",
    params(IdPageParams, SourceListParameters),
    responses((status = 200, body = [PieceSourcesBody<'_>])),
)]
pub(crate) async fn handle(
    actor: Actor<ReadContentPieces>,
    mut query: Query,
) -> Result<Response, Problem> {
    let page = PageRequest::from_query(&mut query, pagination::PER_PAGE_MAX);
    let after = pagination::after_id::<ContentPieceId>(&mut query);
    let groups = GroupFilter::read(&mut query);
    let subtree = query.boolean("subtree");
    query.finish()?;
    let (mut pieces, sources) = if groups.names_nothing {
        Default::default()
    } else {
        let (groups, page) = (groups.ids, page.after(after));
        let request = SourceListRequest { groups, subtree, page };
        overload::uncounted(Box::pin(import_sources::list(actor.caller(), request))).await?
    };
    Ok(page_links::list_by_id(
        page,
        &query,
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
