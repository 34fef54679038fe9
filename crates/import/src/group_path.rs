//! Finds content groups by their paths, such as `Published/Rust Blog`.

use anyhow::{Context, bail};
use galley_application::Error;
use galley_domain::{ContentGroupId, WorkspaceId};
use galley_storage::{Database, IdPage, Tx, content_groups};

/// More than the number of groups in a workspace.
const GROUP_LIST_LIMIT: i64 = 100_000;

/// The children of a group, or the top-level groups, each with its name.
pub(crate) type Children = Vec<(ContentGroupId, String)>;

/// Finds the group of a path. A group's name may contain a `/` itself.
pub(crate) async fn find(
    children: impl AsyncFn(Option<ContentGroupId>) -> anyhow::Result<Children>,
    path: &str,
) -> anyhow::Result<Option<ContentGroupId>> {
    let mut found = Vec::new();
    let mut open = vec![(None, path)];
    while let Some((parent, rest)) = open.pop() {
        for (id, name) in children(parent).await? {
            match rest.strip_prefix(name.as_str()) {
                Some("") => found.push(id),
                Some(below) => open.extend(below.strip_prefix('/').map(|rest| (Some(id), rest))),
                None => {}
            }
        }
    }
    match found[..] {
        [] => Ok(None),
        [id] => Ok(Some(id)),
        _ => {
            let ids: Vec<_> = found.iter().map(ToString::to_string).collect();
            bail!(
                "{} content groups have the path {path}: use an id: {}",
                ids.len(),
                ids.join(", ")
            )
        }
    }
}

/// Finds the group of a path. Fails if it doesn't exist.
pub(crate) async fn existing(
    children: impl AsyncFn(Option<ContentGroupId>) -> anyhow::Result<Children>,
    path: &str,
) -> anyhow::Result<ContentGroupId> {
    if let Some(id) = find(&children, path).await? {
        return Ok(id);
    }
    let names: Vec<_> = children(None).await?.into_iter().map(|(_, name)| name).collect();
    if names.is_empty() {
        bail!("the content group {path} does not exist; the workspace has none");
    }
    bail!("the content group {path} does not exist; the top-level groups are: {}", names.join(", "))
}

/// Finds a group in a database by its id or path.
pub async fn find_in_database(
    database: &Database,
    workspace: WorkspaceId,
    wanted: &str,
) -> anyhow::Result<ContentGroupId> {
    if let Ok(id) = wanted.parse::<ContentGroupId>() {
        let find = async move |tx: &Tx<'_>| {
            Ok::<_, Error>(content_groups::existing(tx, workspace, &[id], None).await?)
        };
        let found = database.read("content_groups.existing", find).await?;
        return found
            .into_iter()
            .next()
            .with_context(|| format!("the content group {id} does not exist"));
    }
    existing(children_in(database, workspace), wanted).await
}

/// Returns a function that lists the children of a group in a database.
pub(crate) fn children_in(
    database: &Database,
    workspace: WorkspaceId,
) -> impl AsyncFn(Option<ContentGroupId>) -> anyhow::Result<Children> {
    async move |parent| {
        let read = async move |tx: &Tx<'_>| {
            let page = IdPage::first(GROUP_LIST_LIMIT);
            Ok::<_, Error>(content_groups::list_children(tx, workspace, parent, &page).await?)
        };
        let found = database.read("content_groups.list_children", read).await?;
        Ok(found.into_iter().map(|group| (group.id, group.name.as_str().to_owned())).collect())
    }
}
