//! References of requests to resources that must exist.

use galley_api_types::problem::{Issue, Step};
use galley_domain::{ContentGroupId, RoleId};
use galley_storage::{Tx, content_groups, roles};

use crate::caller::Caller;
use crate::error::Error;
use crate::scope::Scope;

/// A reference to a resource that must exist.
#[derive(Debug, Clone, Copy)]
pub enum RequiredReference {
    /// A group in the caller's scope.
    ContentGroup(ContentGroupId),
    /// A role of the workspace.
    Role(RoleId),
}

impl RequiredReference {
    async fn exists(self, tx: &Tx<'_>, scope: &Scope) -> Result<bool, Error> {
        Ok(match self {
            Self::ContentGroup(id) => {
                scope.contains(&content_groups::path(tx, scope.workspace, id).await?)
            }
            Self::Role(id) => roles::find(tx, scope.workspace, id).await?.is_some(),
        })
    }

    fn resource_name(self) -> &'static str {
        match self {
            Self::ContentGroup(_) => "content group",
            Self::Role(_) => "role",
        }
    }
}

/// Returns issues for references to missing resources, each with the path of its field.
pub async fn missing(
    caller: &Caller,
    references: Vec<(Vec<Step>, RequiredReference)>,
) -> Result<Vec<Issue>, Error> {
    let scope = caller.scope();
    let read = async move |tx: &Tx<'_>| {
        let mut missing = Vec::new();
        for (path, reference) in &references {
            if !reference.exists(tx, &scope).await? {
                missing.push(Issue::unknown_reference(path.clone(), reference.resource_name()));
            }
        }
        Ok(missing)
    };
    caller.read_current("missing_references", read).await
}
