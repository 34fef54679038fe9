//! `DELETE /tags?id=`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::schemas;
use galley_application::VersionPrecondition;
use galley_application::operations::tags;
use galley_domain::TagId;
use galley_storage::WriteTx;

use crate::app::App;
use crate::extract::actor::{Actor, WriteTags};
use crate::extract::query::Query;
use crate::problem::Problem;
use crate::respond::response;

/// Delete a tag
///
/// The tag is removed from all pieces.
#[utoipa::path(
    delete,
    path = "/tags",
    operation_id = "deleteTag",
    params(("id" = schemas::TagId, Query)),
)]
pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<WriteTags>,
    expected: VersionPrecondition,
    mut query: Query,
) -> Result<Response, Problem> {
    let id = query.id::<TagId>();
    query.finish()?;
    let (id, scope) = (id.get()?, actor.scope());
    let write = async move |tx: &WriteTx<'_>| tags::delete(tx, &scope, id, &expected).await;
    app.database().write("tags.delete", write).await?;
    Ok(response::no_content())
}
