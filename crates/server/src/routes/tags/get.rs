//! `GET /tags?id=`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::schemas;
use galley_api_types::tag::TagBody;
use galley_application::Error;
use galley_domain::TagId;
use galley_storage::{Tx, tags};

use crate::app::App;
use crate::extract::actor::{Actor, ReadTags};
use crate::extract::prefer::StalenessBound;
use crate::extract::query::Query;
use crate::problem::Problem;
use crate::respond::response;

/// Get a tag
#[utoipa::path(
    get,
    path = "/tags",
    operation_id = "getTag",
    params(("id" = schemas::TagId, Query)),
    responses((status = 200, body = TagBody<'_>)),
)]
pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<ReadTags>,
    staleness: StalenessBound,
    mut query: Query,
) -> Result<Response, Problem> {
    let id = query.id::<TagId>();
    query.finish()?;
    let (id, workspace) = (id.get()?, actor.workspace);
    let read =
        async move |tx: &Tx<'_>| tags::find(tx, workspace, id).await?.ok_or_else(Error::not_found);
    let tag = staleness.read(app.database(), "tags.get", read).await?;
    Ok(response::resource(tag.version, &TagBody::from(&tag)))
}
