//! The workspace itself. Its changes emit no events.

use galley_api_types::workspace_member::WorkspaceBody;
use galley_domain::Timestamp;
use galley_domain::audit::AuditAction;
use galley_domain::language::LanguageTag;
use galley_domain::text::{ShortText, WebReference};
use galley_domain::workspace::{Billing, Workspace, WorkspaceName};
use galley_storage::{Tx, WriteTx, search_indexes, workspaces};

use crate::audit::{self, AuditChanges};
use crate::caller::Caller;
use crate::environment::Environment;
use crate::error::Error;
use crate::precondition::VersionPrecondition;
use crate::scope::Scope;

/// An update of a workspace.
#[derive(Debug, Clone, Default)]
pub struct WorkspaceUpdate {
    /// The name.
    pub name: Option<WorkspaceName>,
    /// The description, one sentence.
    pub description: Option<Option<ShortText>>,
    /// The address of the logo.
    pub logo: Option<Option<WebReference>>,
    /// The language of pieces.
    pub language: Option<Option<LanguageTag>>,
    /// The billing, which the operator sets.
    pub billing: BillingUpdate,
}

/// An update of a workspace's billing.
#[derive(Debug, Clone, Default)]
#[expect(missing_docs, reason = "the fields are those of `Billing`")]
pub struct BillingUpdate {
    pub customer_id: Option<Option<String>>,
    pub subscription_status: Option<Option<String>>,
    pub subscription_plan: Option<Option<String>>,
    pub subscription_data: Option<Option<String>>,
    pub subscription_expires_at: Option<Option<Timestamp>>,
}

impl BillingUpdate {
    fn apply(&self, billing: Billing) -> Billing {
        let text = |new: &Option<Option<String>>, old| new.clone().unwrap_or(old);
        Billing {
            customer_id: text(&self.customer_id, billing.customer_id),
            subscription_status: text(&self.subscription_status, billing.subscription_status),
            subscription_plan: text(&self.subscription_plan, billing.subscription_plan),
            subscription_data: text(&self.subscription_data, billing.subscription_data),
            subscription_expires_at: self
                .subscription_expires_at
                .unwrap_or(billing.subscription_expires_at),
        }
    }
}

/// Returns the workspace of the token.
pub async fn get(caller: &Caller) -> Result<Workspace, Error> {
    let id = caller.workspace();
    let read =
        async move |tx: &Tx<'_>| workspaces::find(tx, id).await?.ok_or_else(Error::not_found);
    caller.read("workspace.get", read).await
}

/// Updates the workspace of the token.
pub async fn update(
    caller: &Caller,
    update: WorkspaceUpdate,
    expected: VersionPrecondition,
) -> Result<Workspace, Error> {
    let own = caller.clone();
    let write = async move |tx: &WriteTx<'_>| {
        update_in(tx, own.environment(), &own.scope(), &update, &expected).await
    };
    caller.write("workspace.update", write).await
}

/// Updates a workspace in a transaction.
pub async fn update_in(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    update: &WorkspaceUpdate,
    expected: &VersionPrecondition,
) -> Result<Workspace, Error> {
    let id = scope.workspace;
    workspaces::lock(tx, id).await?;
    let before = workspaces::find(tx, id).await?.ok_or_else(Error::not_found)?;
    expected.check_version(before.version)?;
    let mut workspace = before.clone();
    workspace.name = update.name.clone().unwrap_or(workspace.name);
    workspace.description = update.description.clone().unwrap_or(workspace.description);
    workspace.logo = update.logo.clone().unwrap_or(workspace.logo);
    workspace.language = update.language.clone().unwrap_or(workspace.language);
    workspace.billing = update.billing.apply(workspace.billing);
    if workspace != before {
        workspace.version += 1;
        workspaces::update(tx, &workspace).await?;
        if workspace.language != before.language {
            search_indexes::request_rebuild(tx, id).await?;
        }
        let [old, new] = [&before, &workspace].map(|one| WorkspaceBody::new(one, false));
        let mut changes = AuditChanges::updated(old, new);
        if workspace.billing != before.billing {
            changes = changes.with_field("billing");
        }
        audit::record(tx, environment, scope, AuditAction::WorkspaceUpdate, id, changes);
    }
    Ok(workspace)
}
