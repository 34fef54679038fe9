//! The changes that Galley is made of, each in one transaction with its events.
//!
//! Plain functions over a transaction: they check what must be there, let the domain say what
//! changes, keep it, and append the events last. HTTP endpoints and the program's commands call
//! them alike. What was sent has been read and checked by then.

mod authority;
pub mod content_groups;
pub mod content_pieces;
pub mod deliveries;
pub mod import_sources;
pub mod invites;
pub mod members;
pub mod profile;
pub mod roles;
pub mod setup;
pub mod tags;
pub mod tokens;
pub mod variants;
pub mod webhooks;
pub mod workspace;

use galley_domain::event::Occurrence;
use galley_domain::{ContentGroupId, EventId, WorkspaceId};
use galley_storage::events::NewEvent;
use galley_storage::tokens::Authentication;
use galley_storage::{Tx, content_groups as groups};

use crate::environment::Environment;

use crate::http::error::Error;
use crate::http::problem::{Problem, Reason};

/// Which part of the data an operation sees: one workspace, and of its content perhaps only some
/// groups with what is under them.
#[derive(Debug, Clone)]
pub struct Scope {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The groups; `None`: all content.
    pub content_groups: Option<Vec<ContentGroupId>>,
}

/// Which version of a resource a change is meant for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// Whichever it has.
    Any,
    /// One of these; another one has been changed since the client read it.
    OneOf(Vec<i64>),
}

impl Expected {
    /// Refuses a change of a resource that has another version by now.
    pub(crate) fn check(&self, version: i64) -> Result<(), Error> {
        match self {
            Self::OneOf(versions) if !versions.contains(&version) => {
                let detail = "the resource has changed since it was read: get it again";
                Err(Problem::new(Reason::PreconditionFailed, detail).into())
            }
            _ => Ok(()),
        }
    }
}

impl Scope {
    /// All of a workspace.
    pub fn whole(workspace: WorkspaceId) -> Self {
        Self { workspace, content_groups: None }
    }

    /// What the holder of a token sees.
    pub(crate) fn of(token: &Authentication) -> Self {
        Self { workspace: token.workspace, content_groups: token.content_groups.clone() }
    }

    /// Whether all of these groups are in it. Of what sees everything nothing is asked.
    pub(crate) async fn holds_all(
        &self,
        tx: &Tx<'_>,
        ids: &[ContentGroupId],
    ) -> Result<bool, Error> {
        let Some(limits) = &self.content_groups else { return Ok(true) };
        let seen = groups::existing(tx, self.workspace, ids, Some(limits)).await?;
        Ok(ids.iter().all(|id| seen.contains(id)))
    }

    /// Whether what stands at the end of `path` is in it. There is nothing at the end of an empty
    /// path.
    pub(crate) fn holds(&self, path: &galley_domain::content_group::GroupPath) -> bool {
        match &self.content_groups {
            None => !path.groups().is_empty(),
            Some(limits) => limits.iter().any(|&group| path.contains(group)),
        }
    }

    /// The part of `path` that is in it.
    pub(crate) fn visible<'p>(
        &self,
        path: &'p galley_domain::content_group::GroupPath,
    ) -> &'p [ContentGroupId] {
        let groups = path.groups();
        match &self.content_groups {
            None => groups,
            Some(limits) => {
                let first = groups.iter().position(|group| limits.contains(group));
                first.map_or(&[], |first| &groups[first..])
            }
        }
    }

    /// Whether what stands in `group` is in it.
    pub(crate) async fn sees(&self, tx: &Tx<'_>, group: ContentGroupId) -> Result<bool, Error> {
        if self.content_groups.is_none() {
            return Ok(true);
        }
        Ok(self.holds(&groups::path(tx, self.workspace, group).await?))
    }
}

/// The version of a resource that is restored with its id. It may have been here before and been
/// deleted since: versions count changes, so that none of its versions was as high, and no client's
/// `If-Match` names this one.
pub fn restored_version(environment: &Environment) -> i64 {
    environment.now().ms()
}

/// An event that is to be kept with the change.
fn event(
    environment: &Environment,
    occurrence: Occurrence,
    data: String,
    data_before: Option<String>,
) -> NewEvent {
    let id = EventId::new(environment.new_id());
    NewEvent { id, occurrence, data, data_before, custom_data_of: None }
}
