//! The part of the data that an operation sees.

use galley_domain::content_group::GroupPath;
use galley_domain::{ContentGroupId, WorkspaceId};
use galley_storage::tokens::Authentication;
use galley_storage::{Tx, content_groups as groups};

use crate::error::Error;

/// Which part of the data an operation sees: one workspace, and of its content perhaps only some
/// groups with what is under them.
#[derive(Debug, Clone)]
pub struct Scope {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The groups; `None`: all content.
    pub content_groups: Option<Vec<ContentGroupId>>,
}

impl Scope {
    /// All of a workspace.
    pub fn whole(workspace: WorkspaceId) -> Self {
        Self { workspace, content_groups: None }
    }

    /// What the holder of a token sees.
    pub fn of(token: &Authentication) -> Self {
        Self { workspace: token.workspace, content_groups: token.content_groups.clone() }
    }

    /// Whether all of these groups are in it. Of what sees everything nothing is asked.
    pub async fn holds_all(&self, tx: &Tx<'_>, ids: &[ContentGroupId]) -> Result<bool, Error> {
        let Some(limits) = &self.content_groups else { return Ok(true) };
        let seen = groups::existing(tx, self.workspace, ids, Some(limits)).await?;
        Ok(ids.iter().all(|id| seen.contains(id)))
    }

    /// Whether what stands at the end of `path` is in it. There is nothing at the end of an empty
    /// path.
    pub fn holds(&self, path: &GroupPath) -> bool {
        match &self.content_groups {
            None => !path.groups().is_empty(),
            Some(limits) => limits.iter().any(|&group| path.contains(group)),
        }
    }

    /// The part of `path` that is in it.
    pub fn visible<'p>(&self, path: &'p GroupPath) -> &'p [ContentGroupId] {
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
    pub async fn sees(&self, tx: &Tx<'_>, group: ContentGroupId) -> Result<bool, Error> {
        if self.content_groups.is_none() {
            return Ok(true);
        }
        Ok(self.holds(&groups::path(tx, self.workspace, group).await?))
    }
}
