//! `GET /variants/list`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::variant::VariantBody;
use galley_application::Error;
use galley_domain::VariantId;
use galley_storage::{Tx, variants};

use crate::http::actor::{Actor, ReadVariants};
use crate::http::app::App;
use crate::http::page::{self, Page, PageById};
use crate::http::prefer::Freshness;
use crate::http::query::Query;
use crate::problem::Problem;

/// List the variants
///
/// Returns the variants in the order of their creation, oldest first.
#[utoipa::path(
    get,
    path = "/variants/list",
    operation_id = "listVariants",
    params(PageById),
    responses(
        (status = 200, body = [VariantBody<'_>]),
    ),
)]
pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<ReadVariants>,
    freshness: Freshness,
    mut query: Query,
) -> Result<Response, Problem> {
    let page = Page::read(&mut query, page::PER_PAGE_MAX);
    let after = page::after_id::<VariantId>(&mut query);
    query.finish()?;
    let workspace = actor.workspace;
    let offset = page.offset(after.is_some());
    let read = async move |tx: &Tx<'_>| {
        Ok::<_, Error>(variants::list(tx, workspace, after.as_deref(), page.limit(), offset).await?)
    };
    let mut variants = freshness.read(app.database(), "variants.list", read).await?;
    Ok(page.show(&query, &mut variants, |variant| variant.id, VariantBody::from))
}
