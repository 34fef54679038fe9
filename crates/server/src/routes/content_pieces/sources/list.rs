//! `GET /content-pieces/sources`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::import_source::PieceSourcesBody;
use galley_application::Error;
use galley_application::operations::import_sources;
use galley_domain::ContentPieceId;
use galley_domain::text::ShortText;
use galley_storage::Tx;
use galley_storage::content_piece_list::{self, ListQuery, Position, Sort, SortKey};
use galley_storage::content_pieces::View;

use super::schema::ListParameters;
use crate::app::App;
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
    params(IdPageParams, ListParameters),
    responses((status = 200, body = [PieceSourcesBody<'_>])),
)]
pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<ReadContentPieces>,
    mut query: Query,
) -> Result<Response, Problem> {
    let page = PageRequest::from_query(&mut query, pagination::PER_PAGE_MAX);
    let after = pagination::after_id::<ContentPieceId>(&mut query);
    let groups = GroupFilter::read(&mut query);
    let subtree = query.boolean("subtree");
    query.finish()?;
    let scope = actor.scope();
    let offset = page.offset(after.is_some());
    let read = async move |tx: &Tx<'_>| {
        if groups.names_nothing {
            return Ok(Default::default());
        }
        let list = ListQuery {
            groups: groups.ids.clone(),
            subtree,
            within: scope.content_groups.clone(),
            slug: None,
            tag: None,
            sort: Sort { key: SortKey::CreatedAt, descending: false },
            after: after.clone().map(Position::Id),
            limit: page.limit(),
            offset,
            view: View::default(),
        };
        let pieces = content_piece_list::list(tx, scope.workspace, &list).await?;
        let ids: Vec<_> = pieces.iter().map(|(piece, _)| piece.id).collect();
        let sources = import_sources::list(tx, &scope, &ids).await?;
        Ok::<_, Error>((pieces, sources))
    };
    let read = app.database().read_long("content_pieces.sources", read);
    let (mut pieces, sources) = overload::uncounted(Box::pin(read)).await?;
    Ok(page_links::list_by_id(
        page,
        &query,
        &mut pieces,
        |(piece, _)| piece.id,
        |(piece, _)| PieceSourcesBody {
            id: piece.id,
            content_group_id: piece.content_group_id,
            filename: piece.fields.filename.as_ref().map(ShortText::as_str),
            sources: sources.get(&piece.id).into_iter().flatten().map(Into::into).collect(),
        },
    ))
}
