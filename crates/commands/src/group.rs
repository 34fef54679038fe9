//! `galley group list|create|move|delete`

use std::collections::HashMap;

use anyhow::{Context, bail};
use galley_api_types::content_group::{ContentGroupChange, NewContentGroup};
use galley_application::operations::content_groups;
use galley_application::{Environment, Error, Scope, VersionPrecondition};
use galley_domain::content_group::{ContentGroup, ContentGroupName};
use galley_domain::trash::Deletion;
use galley_domain::{ContentGroupId, WorkspaceId};
use galley_storage::{Database, IdPage, Tx, WriteTx, content_groups as groups};

use crate::cli::administration::GroupCommand;
use crate::out::{escape_for_terminal, say};
use crate::settings::Settings;
use crate::store;
use galley_import::group_path;

pub(crate) async fn run(settings: &Settings, command: &GroupCommand) -> anyhow::Result<()> {
    let environment = Environment::default();
    let database = store::open_existing(settings, &environment).await?;
    let kind = Deletion::with_retention(settings.trash_retention);
    let done = run_on(&database, environment, command, kind).await;
    database.close().await;
    done
}

async fn run_on(
    database: &Database,
    environment: Environment,
    command: &GroupCommand,
    deletion: Deletion,
) -> anyhow::Result<()> {
    let workspace = match command {
        GroupCommand::List { workspace }
        | GroupCommand::Create { workspace, .. }
        | GroupCommand::Move { workspace, .. }
        | GroupCommand::Delete { workspace, .. } => workspace.as_deref(),
    };
    let workspace = store::workspace(database, workspace).await?;
    match command {
        GroupCommand::List { .. } => list(database, workspace).await,
        GroupCommand::Create { path, .. } => create(database, environment, workspace, path).await,
        GroupCommand::Move { group, to, .. } => {
            move_to(database, environment, workspace, group, to).await
        }
        GroupCommand::Delete { group, recursive, .. } => {
            delete(database, environment, workspace, group, *recursive, deletion).await
        }
    }
}

/// All groups of a workspace.
#[derive(Debug)]
pub(crate) struct GroupTree {
    /// The groups, each with its parent.
    pub(crate) groups: Vec<(ContentGroup, Option<ContentGroupId>)>,
    places: HashMap<ContentGroupId, usize>,
}

impl GroupTree {
    pub(crate) async fn read(tx: &Tx<'_>, workspace: WorkspaceId) -> Result<Self, Error> {
        let top = groups::list_children(tx, workspace, None, &IdPage::default()).await?;
        let top: Vec<_> = top.into_iter().map(|group| group.id).collect();
        let groups = groups::subtree(tx, workspace, &top).await?;
        let places = (0..).zip(&groups).map(|(place, (group, _))| (group.id, place)).collect();
        Ok(Self { groups, places })
    }

    /// Returns a group and those above it, upwards.
    pub(crate) fn upwards(&self, id: ContentGroupId) -> impl Iterator<Item = &ContentGroup> {
        let place = |id: ContentGroupId| self.places.get(&id).map(|&place| &self.groups[place]);
        let next = move |found: &&(ContentGroup, Option<ContentGroupId>)| found.1.and_then(place);
        std::iter::successors(place(id), next).map(|(group, _)| group)
    }

    /// Returns the names of a group and those above it, from the top level down.
    pub(crate) fn path(&self, id: ContentGroupId) -> String {
        let mut names: Vec<&str> = self.upwards(id).map(|group| group.name.as_str()).collect();
        names.reverse();
        names.join("/")
    }
}

/// Lists all groups with their paths, each after its parent.
async fn list(database: &Database, workspace: WorkspaceId) -> anyhow::Result<()> {
    let read = async move |tx: &Tx<'_>| GroupTree::read(tx, workspace).await;
    let tree = database.read_long("content_groups.subtree", read).await?;
    let mut paths: Vec<_> =
        tree.groups.iter().map(|(group, _)| (tree.path(group.id), group.id)).collect();
    paths.sort();
    for (path, id) in paths {
        say!("{id}  {}", escape_for_terminal(&path));
    }
    Ok(())
}

/// Creates the missing groups of a path, and prints the id of the last one.
async fn create(
    database: &Database,
    environment: Environment,
    workspace: WorkspaceId,
    path: &str,
) -> anyhow::Result<()> {
    if path.trim_matches('/').is_empty() {
        bail!("name the content group to create, such as Published/News");
    }
    let names = path.split('/').map(|name| {
        ContentGroupName::parse(name).with_context(|| format!("the group {name:?} in {path}"))
    });
    let names: Vec<_> = names.collect::<anyhow::Result<_>>()?;
    let scope = Scope::whole(workspace);
    let write = async move |tx: &WriteTx<'_>| {
        let (mut parent, mut is_new) = (None, false);
        for name in &names {
            let children = groups::list_children(tx, workspace, parent, &IdPage::default()).await?;
            parent = Some(match children.into_iter().find(|child| child.name == *name) {
                Some(found) => found.id,
                None => {
                    is_new = true;
                    {
                        let new = NewContentGroup {
                            name: name.clone(),
                            ancestor: parent,
                            unique_slugs: None,
                            custom_data_schema: None,
                            preview_url: None,
                        };
                        content_groups::create_in(tx, &environment, &scope, &new).await?.id
                    }
                }
            });
        }
        Ok::<_, Error>((parent, is_new))
    };
    let (group, is_new) = database.write("content_groups.create", write).await?;
    let group = group.context("a path has a name")?;
    if !is_new {
        bail!("the content group {path} exists already: {group}");
    }
    eprintln!("Created the content group {}.", escape_for_terminal(path));
    say!("{group}");
    Ok(())
}

/// Moves a group below another one, or to the top level.
async fn move_to(
    database: &Database,
    environment: Environment,
    workspace: WorkspaceId,
    group: &str,
    to: &str,
) -> anyhow::Result<()> {
    let id = group_path::find_in_database(database, workspace, group).await?;
    let parent = match to {
        "/" => None,
        to => Some(group_path::find_in_database(database, workspace, to).await?),
    };
    let scope = Scope::whole(workspace);
    let change = ContentGroupChange {
        name: None,
        ancestor: Some(parent),
        unique_slugs: None,
        custom_data_schema: None,
        preview_url: None,
    };
    let write = async move |tx: &WriteTx<'_>| {
        content_groups::update_in(tx, &environment, &scope, id, &change, &VersionPrecondition::Any)
            .await
    };
    database.write("content_groups.update", write).await?;
    eprintln!(
        "Moved the content group {} to {}.",
        escape_for_terminal(group),
        escape_for_terminal(to)
    );
    Ok(())
}

/// Deletes a group, and its contents if `recursive` is set.
async fn delete(
    database: &Database,
    environment: Environment,
    workspace: WorkspaceId,
    group: &str,
    recursive: bool,
    kind: Deletion,
) -> anyhow::Result<()> {
    let id = group_path::find_in_database(database, workspace, group).await?;
    let scope = Scope::whole(workspace);
    let write = async move |tx: &WriteTx<'_>| {
        content_groups::delete_in(
            tx,
            &environment,
            &scope,
            id,
            recursive,
            &VersionPrecondition::Any,
            kind,
        )
        .await
    };
    let deleted = database.write("content_groups.delete", write).await;
    deleted.with_context(|| {
        let hint = if recursive { "" } else { " (--recursive also deletes its contents)" };
        format!("the content group {group}{hint}")
    })?;
    eprintln!("Deleted the content group {}.", escape_for_terminal(group));
    Ok(())
}
