//! `GET /content-groups?id=`

use axum::extract::State;
use axum::response::Response;
use galley_domain::ContentGroupId;
use galley_storage::{Tx, content_groups};

use crate::http::actor::{Actor, ReadContentGroups};
use crate::http::app::App;
use crate::http::error::Error;
use crate::http::prefer::Freshness;
use crate::http::query::Query;
use crate::openapi::schemas;
use crate::operations::Scope;
use crate::representation::content_group::{ContentGroupBody, Descendants, nested};

/// Get a content group
#[utoipa::path(
    get,
    path = "/content-groups",
    operation_id = "getContentGroup",
    params(
        ("id" = schemas::ContentGroupId, Query),
        ("subtree" = Option<bool>, Query, description = "With what is under it, whole"),
    ),
    responses((status = 200, body = ContentGroupBody<'_>)),
)]
pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<ReadContentGroups>,
    freshness: Freshness,
    mut query: Query,
) -> Result<Response, Error> {
    let id = query.id::<ContentGroupId>();
    let subtree = query.boolean("subtree");
    query.finish()?;
    let (id, scope) = (id.get()?, actor.scope());
    let answering = app.clone();
    let read = async move |tx: &Tx<'_>| {
        let answer = |version, body: &ContentGroupBody<'_>| {
            answering.answer(scope.workspace, version, body, "subtree")
        };
        show(tx, &scope, id, subtree, answer).await?
    };
    freshness.read(app.database(), "content_groups.get", read).await
}

/// Reads a group and calls `answer` with its version and representation.
pub(super) async fn show<T>(
    tx: &Tx<'_>,
    scope: &Scope,
    id: ContentGroupId,
    subtree: bool,
    answer: impl FnOnce(i64, &ContentGroupBody<'_>) -> T + Send,
) -> Result<T, Error> {
    let workspace = scope.workspace;
    let ids = [id];
    let (group, path) = futures_util::future::try_join(
        content_groups::find(tx, workspace, id),
        content_groups::path(tx, workspace, id),
    )
    .await?;
    let group = group.filter(|_| scope.holds(&path)).ok_or_else(Error::not_found)?;
    let path = scope.visible(&path);
    let (under, children);
    let descendants = if subtree {
        under = content_groups::subtree(tx, workspace, &ids).await?;
        Descendants::Nested(nested(&under, id, path))
    } else {
        children = content_groups::children_of(tx, workspace, &ids).await?;
        Descendants::Ids(children.get(&id).map(Vec::as_slice).unwrap_or_default())
    };
    let ancestors = &path[..path.len() - 1];
    let name = group.name.as_str();
    Ok(answer(group.version, &ContentGroupBody { id, name, ancestors, descendants }))
}
