//! `/workspace`: the token's own workspace.

pub(crate) mod get;
mod schema;
pub(crate) mod update;

use galley_domain::Permission;
use galley_domain::permission::Resource;
use galley_storage::tokens::Authentication;

/// Whether somebody is shown the workspace's billing.
pub(crate) fn sees_billing(actor: &Authentication) -> bool {
    actor.permissions.allows(Permission::write(Resource::Workspace))
}
