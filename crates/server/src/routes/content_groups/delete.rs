//! `DELETE /content-groups?id=`

use axum::extract::State;
use axum::response::Response;
use galley_domain::ContentGroupId;
use galley_storage::WriteTx;

use crate::http::actor::{Actor, WriteContentGroups};
use crate::http::app::App;
use crate::http::error::Error;
use crate::http::query::Query;
use crate::http::response;
use crate::operations::{Expected, content_groups};

pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<WriteContentGroups>,
    expected: Expected,
    mut query: Query,
) -> Result<Response, Error> {
    let id = query.id::<ContentGroupId>();
    let recursive = query.boolean("recursive");
    query.finish()?;
    let (id, scope) = (id.get()?, actor.scope());
    let environment = app.environment().clone();
    let write = async move |tx: &WriteTx<'_>| {
        content_groups::delete(tx, &environment, &scope, id, recursive, &expected).await
    };
    app.database().write("content_groups.delete", write).await?;
    Ok(response::no_content())
}
