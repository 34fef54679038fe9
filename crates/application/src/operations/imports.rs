//! The access of imports, which change content, groups, tags, variants and publications together.

use galley_api_types::problem::{Issue, Step};
use galley_domain::permission::Resource;
use galley_domain::revision::Origin;
use galley_domain::{ContentGroupId, Permission};
use galley_storage::{Database, Tx, content_groups};

use crate::caller::Caller;
use crate::environment::Environment;
use crate::error::Error;
use crate::operations::asset_import::AssetDestination;
use crate::rejection::{Reason, Rejection};
use crate::scope::Scope;

/// The permissions that every import needs.
const PERMISSIONS: [Permission; 3] = [
    Permission::write(Resource::ContentPieces),
    Permission::write(Resource::Tags),
    // Authors in sources are found by the names and addresses of members.
    Permission::read(Resource::WorkspaceMemberships),
];

/// The parts that an import works with.
#[derive(Debug)]
pub struct ImportAccess {
    /// The database.
    pub database: Database,
    /// The source of time and randomness.
    pub environment: Environment,
    /// The author of the changes, and the workspace.
    pub scope: Scope,
    /// The assets of the workspace.
    pub assets: AssetDestination,
}

/// Returns the access of a caller who may change all content of the workspace, and has `further`
/// permissions. Rejects a group that does not exist.
pub async fn authorize(
    caller: &Caller,
    group: ContentGroupId,
    further: &[Permission],
) -> Result<ImportAccess, Error> {
    for permission in PERMISSIONS.into_iter().chain(further.iter().copied()) {
        caller.require(permission)?;
    }
    let scope = Scope { origin: Origin::Import, ..caller.scope() };
    scope.require_current_view()?;
    if scope.content_groups.is_some() {
        let detail = "the token is limited to some groups, and an import creates tags for all";
        return Err(Rejection::new(Reason::OutsideGroupLimit, detail).into());
    }
    let workspace = scope.workspace;
    let find =
        async move |tx: &Tx<'_>| Ok(content_groups::existing(tx, workspace, &[group], None).await?);
    if caller.read_current("imports.group", find).await?.is_empty() {
        let path = vec![Step::Field("contentGroupId".to_owned())];
        Error::reject_issues(vec![Issue::unknown_reference(path, "content group")])?;
    }
    let service = caller.service();
    let (database, environment) = (service.database().clone(), service.environment().clone());
    let settings = service.settings().assets.clone();
    let assets =
        AssetDestination::new(database.clone(), environment.clone(), scope.clone(), settings);
    Ok(ImportAccess { database, environment, scope, assets })
}
