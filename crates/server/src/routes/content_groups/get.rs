//! `GET /content-groups?id=`

use axum::extract::State;
use axum::response::Response;
use galley_domain::ContentGroupId;
use galley_storage::{Tx, content_groups};

use crate::http::actor::{Actor, ReadContentGroups};
use crate::http::app::App;
use crate::http::error::Error;
use crate::http::query::Query;
use crate::http::response;
use crate::representation::content_group::{ContentGroupBody, Descendants, nested};

pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<ReadContentGroups>,
    mut query: Query,
) -> Result<Response, Error> {
    let id = query.id::<ContentGroupId>();
    let subtree = query.boolean("subtree");
    query.finish()?;
    let (id, scope) = (id.get()?, actor.scope());
    let read = async move |tx: &Tx<'_>| {
        let workspace = scope.workspace;
        let ids = [id];
        let (group, path, under) = futures_util::future::try_join3(
            content_groups::find(tx, workspace, id),
            content_groups::path(tx, workspace, id),
            async {
                if subtree {
                    content_groups::subtree(tx, workspace, &ids).await
                } else {
                    Ok(vec![])
                }
            },
        )
        .await?;
        let group = group.filter(|_| scope.holds(&path)).ok_or_else(Error::not_found)?;
        let children = content_groups::children_of(tx, workspace, &ids).await?;
        let path = scope.visible(&path);
        let descendants = if subtree {
            Descendants::Nested(nested(&under, id, path))
        } else {
            Descendants::Ids(children.get(&id).map(Vec::as_slice).unwrap_or_default())
        };
        let ancestors = &path[..path.len() - 1];
        let name = group.name.as_str();
        Ok::<_, Error>(response::ok(&ContentGroupBody { id, name, ancestors, descendants }))
    };
    app.database().read("content_groups.get", read).await
}
