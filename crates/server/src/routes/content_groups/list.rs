//! `GET /content-groups/list`

use std::collections::HashMap;

use axum::extract::State;
use axum::response::Response;
use galley_domain::ContentGroupId;
use galley_domain::content_group::{ContentGroup, GroupPath};
use galley_storage::{Tx, content_groups};

use crate::http::actor::{Actor, ReadContentGroups};
use crate::http::app::App;
use crate::http::error::Error;
use crate::http::page::{self, Page, PageById};
use crate::http::prefer::Freshness;
use crate::http::query::Query;
use crate::http::response;
use crate::operations::Scope;
use crate::representation::content_group::{ContentGroupBody, Descendants, nested};

/// List the content groups of a level
///
/// Returns the top-level groups or the direct children of `ancestor`, oldest first. For a token
/// that is limited to groups, those groups are the top level.
#[utoipa::path(
    get,
    path = "/content-groups/list",
    operation_id = "listContentGroups",
    params(
        (
            "ancestor" = Option<String>, Query,
            description = "The group whose children are listed; one that isn't there has none"
        ),
        ("subtree" = Option<bool>, Query, description = "With what is under them, whole"),
        PageById,
    ),
    responses((status = 200, body = [ContentGroupBody<'_>])),
)]
pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<ReadContentGroups>,
    freshness: Freshness,
    mut query: Query,
) -> Result<Response, Error> {
    let subtree = query.boolean("subtree");
    let page = Page::read(&mut query, page::PER_PAGE_MAX);
    let after = page::after_id::<ContentGroupId>(&mut query);
    let ancestor = query.text("ancestor");
    query.finish()?;
    let ancestor = match ancestor.map(|text| text.parse::<ContentGroupId>()) {
        // A malformed identifier matches no group, so the list is empty.
        Some(Err(_)) => return Ok(response::ok(&[(); 0])),
        Some(Ok(id)) => Some(id),
        None => None,
    };
    let scope = actor.scope();
    let answering = app.clone();
    let read = async move |tx: &Tx<'_>| {
        list(&answering, tx, &scope, ancestor, page, after.as_deref(), subtree, &query).await
    };
    freshness.read(app.database(), "content_groups.list", read).await
}

#[expect(clippy::too_many_arguments, reason = "each says what is asked for")]
async fn list(
    app: &App,
    tx: &Tx<'_>,
    scope: &Scope,
    ancestor: Option<ContentGroupId>,
    page: Page,
    after: Option<&str>,
    subtree: bool,
    query: &Query,
) -> Result<Response, Error> {
    let workspace = scope.workspace;
    let path = match ancestor {
        Some(ancestor) => content_groups::path(tx, workspace, ancestor).await?,
        None => GroupPath::default(),
    };
    let mut groups = level(tx, scope, ancestor, &path, page, after).await?;
    let next = page.cut(&mut groups).map(|group| page::id_cursor(group.id));
    let ids: Vec<_> = groups.iter().map(|group| group.id).collect();
    let above = scope.visible(&path);
    let (children, under) = if subtree {
        (HashMap::new(), content_groups::subtree(tx, workspace, &ids).await?)
    } else {
        (content_groups::children_of(tx, workspace, &ids).await?, Vec::new())
    };
    let body = |group: &'_ ContentGroup| {
        let mut own_path = above.to_vec();
        own_path.push(group.id);
        if subtree {
            Descendants::Nested(nested(&under, group.id, &own_path))
        } else {
            Descendants::Ids(children.get(&group.id).map(Vec::as_slice).unwrap_or_default())
        }
    };
    let bodies: Vec<_> = groups
        .iter()
        .map(|group| ContentGroupBody {
            id: group.id,
            name: group.name.as_str(),
            ancestors: above,
            descendants: body(group),
        })
        .collect();
    let mut response = app.answer(workspace, 0, &bodies, "subtree")?;
    page::link_next(&mut response, query, next.as_deref());
    Ok(response)
}

/// Returns the direct children of `ancestor` or, without one, the topmost groups in scope.
async fn level(
    tx: &Tx<'_>,
    scope: &Scope,
    ancestor: Option<ContentGroupId>,
    path: &GroupPath,
    page: Page,
    after: Option<&str>,
) -> Result<Vec<ContentGroup>, Error> {
    let (limit, offset) = (page.limit(), page.offset(after.is_some()));
    let workspace = scope.workspace;
    let groups = match (ancestor, &scope.content_groups) {
        (Some(_), _) if !scope.holds(path) => Vec::new(),
        (None, Some(limits)) => {
            let roots = topmost(tx, scope, limits).await?;
            content_groups::list_some(tx, workspace, &roots, after, limit, offset).await?
        }
        _ => content_groups::list_children(tx, workspace, ancestor, after, limit, offset).await?,
    };
    Ok(groups)
}

/// Returns the groups of a token's limit, without those that are below another one of them.
async fn topmost(
    tx: &Tx<'_>,
    scope: &Scope,
    limits: &[ContentGroupId],
) -> Result<Vec<ContentGroupId>, Error> {
    let mut roots = Vec::new();
    for &group in limits {
        let path = content_groups::path(tx, scope.workspace, group).await?;
        if scope.visible(&path).first() == Some(&group) {
            roots.push(group);
        }
    }
    Ok(roots)
}
