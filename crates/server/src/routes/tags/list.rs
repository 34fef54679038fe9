//! `GET /tags/list`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::tag::TagBody;
use galley_application::Error;
use galley_domain::TagId;
use galley_storage::{Tx, tags};

use crate::http::actor::{Actor, ReadTags};
use crate::http::app::App;
use crate::http::page::{self, Page, PageById};
use crate::http::prefer::Freshness;
use crate::http::query::Query;
use crate::problem::Problem;

/// List the tags
///
/// Returns the tags in the order of their creation, oldest first.
#[utoipa::path(
    get,
    path = "/tags/list",
    operation_id = "listTags",
    params(PageById),
    responses((status = 200, body = [TagBody<'_>])),
)]
pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<ReadTags>,
    freshness: Freshness,
    mut query: Query,
) -> Result<Response, Problem> {
    let page = Page::read(&mut query, page::PER_PAGE_MAX);
    let after = page::after_id::<TagId>(&mut query);
    query.finish()?;
    let workspace = actor.workspace;
    let offset = page.offset(after.is_some());
    let read = async move |tx: &Tx<'_>| {
        Ok::<_, Error>(tags::list(tx, workspace, after.as_deref(), page.limit(), offset).await?)
    };
    let mut tags = freshness.read(app.database(), "tags.list", read).await?;
    Ok(page.show(&query, &mut tags, |tag| tag.id, TagBody::from))
}
