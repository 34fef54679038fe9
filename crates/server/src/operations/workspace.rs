//! Changing a workspace itself. It fires no event.

use galley_domain::WorkspaceId;
use galley_domain::text::{ShortText, WebReference};
use galley_domain::workspace::{Billing, Workspace, WorkspaceName};
use galley_storage::{WriteTx, workspaces};

use crate::http::error::Error;
use crate::operations::Expected;

/// A workspace's change.
#[derive(Debug, Clone, Default)]
pub struct WorkspaceUpdate {
    /// What people call it.
    pub name: Option<WorkspaceName>,
    /// One sentence for people.
    pub description: Option<Option<ShortText>>,
    /// Where its logo is.
    pub logo: Option<Option<WebReference>>,
    /// Its billing: the operator's to say.
    pub billing: Option<Billing>,
}

/// Changes a workspace.
pub async fn update(
    tx: &WriteTx<'_>,
    id: WorkspaceId,
    update: &WorkspaceUpdate,
    expected: &Expected,
) -> Result<Workspace, Error> {
    workspaces::lock(tx, id).await?;
    let before = workspaces::find(tx, id).await?.ok_or_else(Error::not_found)?;
    expected.check(before.version)?;
    let mut workspace = before.clone();
    workspace.name = update.name.clone().unwrap_or(workspace.name);
    workspace.description = update.description.clone().unwrap_or(workspace.description);
    workspace.logo = update.logo.clone().unwrap_or(workspace.logo);
    workspace.billing = update.billing.clone().unwrap_or(workspace.billing);
    if workspace != before {
        workspace.version += 1;
        workspaces::update(tx, &workspace).await?;
    }
    Ok(workspace)
}
