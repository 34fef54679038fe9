//! `/workspace`: the token's workspace.

pub(crate) mod get;
mod schema;
pub(crate) mod update;

use galley_domain::Permission;
use galley_domain::permission::Resource;
use galley_storage::tokens::Authentication;

/// Returns true if the token may read the workspace's billing.
pub(crate) fn sees_billing(actor: &Authentication) -> bool {
    actor.permissions.allows(Permission::write(Resource::Workspace))
}
