//! Assets. An upload writes the file into the store first, and then the rows in a transaction. A
//! deletion removes the rows first. So each row has its file, and a file without a row is left by
//! an interruption, and is removed by the housekeeping.

use galley_api_types::asset::{AssetBody, AssetChange};
use galley_api_types::problem::{Issue, Step};
use galley_assets::FileName;
use galley_domain::asset::{Asset, AssetFile, AssetFilename};
use galley_domain::audit::AuditAction;
use galley_domain::content_group::GroupPath;
use galley_domain::event::ResourceChange;
use galley_domain::text::ShortText;
use galley_domain::{AssetId, ContentGroupId, Invalid, WorkspaceId};
use galley_storage::asset_usage::{self, ReferringPiece, VisibleAssets};
pub use galley_storage::assets::AssetFilter;
use galley_storage::assets::FileInsertion;
use galley_storage::{IdPage, Tx, WriteTx, assets, content_groups, event_append};

use crate::asset_resources::AssetSettings;
use crate::audit::{self, AuditChanges};
use crate::caller::Caller;
use crate::environment::Environment;
use crate::error::Error;
use crate::idempotency::{self, CreatedResponse, IdempotentRequest, Respond};
use crate::operations::asset_files::{UploadedFile, delete_file, remove_unused};
use crate::operations::event;
use crate::precondition::VersionPrecondition;
use crate::rejection::{Reason, Rejection};
use crate::scope::Scope;

/// A new asset without its file.
#[derive(Debug, Clone)]
pub struct NewAsset {
    /// The name of the file.
    pub filename: AssetFilename,
    /// The text in place of an image.
    pub alt: Option<ShortText>,
    /// The group; `None` for the whole workspace.
    pub content_group_id: Option<ContentGroupId>,
}

/// Returns the assets that a scope sees.
pub(crate) fn visible(scope: &Scope) -> VisibleAssets<'_> {
    VisibleAssets { view: scope.view, within: scope.content_groups.as_deref() }
}

/// Returns an asset that the caller sees.
pub async fn get(caller: &Caller, id: AssetId) -> Result<Asset, Error> {
    let scope = caller.scope();
    let read = async move |tx: &Tx<'_>| {
        let found = assets::find(tx, scope.workspace, id, visible(&scope)).await?;
        found.ok_or_else(Error::not_found)
    };
    caller.read("assets.get", read).await
}

/// Lists the assets that the caller sees.
pub async fn list(caller: &Caller, filter: AssetFilter, page: IdPage) -> Result<Vec<Asset>, Error> {
    let scope = caller.scope();
    let read = async move |tx: &Tx<'_>| {
        Ok(assets::list(tx, scope.workspace, visible(&scope), &filter, &page).await?)
    };
    caller.read_long("assets.list", read).await
}

/// The limit on places in a list of uses.
const USES_LIMIT: i64 = 1_000;

/// Lists the places in which an asset is used, as far as the caller sees them.
pub async fn used_by(caller: &Caller, id: AssetId) -> Result<Vec<ReferringPiece>, Error> {
    let scope = caller.scope();
    let read = async move |tx: &Tx<'_>| {
        let found = assets::find(tx, scope.workspace, id, visible(&scope)).await?;
        let asset = found.ok_or_else(Error::not_found)?;
        uses(tx, &scope, &asset).await
    };
    caller.read("assets.used_by", read).await
}

async fn uses(tx: &Tx<'_>, scope: &Scope, asset: &Asset) -> Result<Vec<ReferringPiece>, Error> {
    let (workspace, within) = (scope.workspace, scope.content_groups.as_deref());
    Ok(asset_usage::list(tx, workspace, asset.key, within, USES_LIMIT).await?)
}

/// Creates the asset of an uploaded file. If the workspace has an equal file, that one is used.
pub async fn create(
    caller: &Caller,
    new: NewAsset,
    uploaded: UploadedFile,
    request: IdempotentRequest,
    respond: Respond<Asset>,
) -> Result<CreatedResponse, Error> {
    let (own, file, name) = (caller.clone(), uploaded.file.clone(), uploaded.name.clone());
    let create = async move |tx: &WriteTx<'_>| {
        let settings = &own.service().settings().assets;
        let id = AssetId::new(own.environment().new_id());
        let scope = own.scope();
        create_in(tx, own.environment(), &scope, settings, id, new.clone(), file.clone()).await
    };
    let created = idempotency::create(caller, "assets.create", request, None, create, respond);
    let created = created.await;
    let service = caller.service();
    remove_unused(service.database(), &service.settings().assets.store, &name, &created).await;
    created
}

/// Creates the asset of an uploaded file. If the workspace has an equal file, that one is used.
pub(crate) async fn create_in(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    settings: &AssetSettings,
    id: AssetId,
    new: NewAsset,
    file: AssetFile,
) -> Result<Asset, Error> {
    let workspace = scope.workspace;
    check_group(tx, scope, new.content_group_id).await?;
    let file = share_file(tx, workspace, settings.workspace_limit, file).await?;
    let asset = Asset {
        id,
        key: environment.new_asset_key(),
        filename: new.filename,
        alt: new.alt,
        content_group_id: new.content_group_id,
        version: 1,
        created_at: environment.now(),
        file,
    };
    assets::insert(tx, workspace, &asset).await?;
    let body = AssetBody::new(&asset, &settings.base_url);
    let changes = AuditChanges::created(&body);
    audit::record(tx, environment, scope, AuditAction::AssetCreate, asset.id, changes);
    let path = path_of(tx, workspace, &asset).await?;
    append_event(tx, environment, workspace, ResourceChange::AssetAdded(path), &body).await?;
    Ok(asset)
}

/// Returns the equal file of the workspace, or inserts this one.
pub(crate) async fn share_file(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    workspace_limit: Option<u64>,
    file: AssetFile,
) -> Result<AssetFile, Error> {
    if let Some(known) = assets::find_file_for_update(tx, workspace, &file.sha256).await? {
        return Ok(known);
    }
    check_workspace_size(tx, workspace, workspace_limit, file.size).await?;
    match assets::insert_file(tx, workspace, &file).await? {
        FileInsertion::Inserted => Ok(file),
        FileInsertion::HasEqual => {
            // Another transaction has committed it meanwhile.
            let known = assets::find_file_for_update(tx, workspace, &file.sha256).await?;
            Ok(known.ok_or(galley_storage::Error::Conflict)?)
        }
        FileInsertion::IsRemoved => {
            let detail = "the upload took longer than a day";
            Err(Rejection::new(Reason::RequestTimeout, detail).into())
        }
    }
}

/// Rejects a file with which the workspace would exceed its size limit.
pub(crate) async fn check_workspace_size(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    limit: Option<u64>,
    size: i64,
) -> Result<(), Error> {
    let Some(limit) = limit else { return Ok(()) };
    let stored = assets::stored_size(tx, workspace).await?.saturating_add(size);
    if u64::try_from(stored).is_ok_and(|stored| stored <= limit) {
        return Ok(());
    }
    let detail = format!("the assets of a workspace may have at most {limit} bytes together");
    Err(Rejection::new(Reason::AssetStorageExceeded, detail).into())
}

/// Rejects a group that does not exist, or that the token does not reach. A limited token names
/// one.
pub(crate) async fn check_group(
    tx: &Tx<'_>,
    scope: &Scope,
    group: Option<ContentGroupId>,
) -> Result<(), Error> {
    let limits = scope.content_groups.as_deref();
    let Some(group) = group else {
        if limits.is_none() {
            return Ok(());
        }
        let message = "is required, as the token is limited to some groups";
        return Err(
            Rejection::of_field("contentGroupId", &Invalid::new("required", message)).into()
        );
    };
    let found = content_groups::existing(tx, scope.workspace, &[group], limits).await?;
    if found.is_empty() {
        let path = vec![Step::Field("contentGroupId".to_owned())];
        Error::reject_issues(vec![Issue::unknown_reference(path, "content group")])?;
    }
    Ok(())
}

/// Returns the path of an asset's group, if it has one that exists.
async fn path_of(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    asset: &Asset,
) -> Result<Option<GroupPath>, Error> {
    let Some(group) = asset.content_group_id else { return Ok(None) };
    let path = content_groups::path(tx, workspace, group).await?;
    Ok(Some(path).filter(|path| !path.groups().is_empty()))
}

async fn append_event(
    tx: &WriteTx<'_>,
    environment: &Environment,
    workspace: WorkspaceId,
    change: ResourceChange,
    body: &AssetBody<'_>,
) -> Result<(), Error> {
    let data = serde_json::to_string(body).expect("an asset is JSON");
    let event = event(environment, change, data, None);
    Ok(event_append::append(tx, workspace, [event], environment.now()).await?)
}

/// Updates an asset.
pub async fn update(
    caller: &Caller,
    id: AssetId,
    change: AssetChange,
    expected: VersionPrecondition,
) -> Result<Asset, Error> {
    let own = caller.clone();
    let write = async move |tx: &WriteTx<'_>| {
        let scope = own.scope();
        let before = find_for_update(tx, &scope, id, &expected).await?;
        if let Some(group) = change.content_group_id
            && group != before.content_group_id
        {
            check_group(tx, &scope, group).await?;
        }
        let mut asset = before.clone();
        asset.filename = change.filename.as_ref().unwrap_or(&asset.filename).clone();
        asset.alt = change.alt.as_ref().unwrap_or(&asset.alt).clone();
        asset.content_group_id = change.content_group_id.unwrap_or(asset.content_group_id);
        if asset != before {
            asset.version += 1;
            assets::update(tx, scope.workspace, &asset).await?;
            let base_url = &own.service().settings().assets.base_url;
            let [before, after] = [&before, &asset].map(|asset| AssetBody::new(asset, base_url));
            own.record(tx, AuditAction::AssetUpdate, id, AuditChanges::updated(before, after));
        }
        Ok(asset)
    };
    caller.write("assets.update", write).await
}

/// Finds an asset for a change. A limited token changes assets of its groups only, not those that
/// it sees in a piece.
async fn find_for_update(
    tx: &WriteTx<'_>,
    scope: &Scope,
    id: AssetId,
    expected: &VersionPrecondition,
) -> Result<Asset, Error> {
    let found = assets::find_for_update(tx, scope.workspace, id, visible(scope)).await?;
    let asset = found.ok_or_else(Error::not_found)?;
    if !is_own(tx, scope, asset.content_group_id).await? {
        let detail = "the token is limited to some groups, and the asset belongs to no one of them";
        return Err(Rejection::new(Reason::OutsideGroupLimit, detail).into());
    }
    expected.check_version(asset.version)?;
    Ok(asset)
}

/// Returns true if the scope changes assets of this group, or of the whole workspace.
pub(crate) async fn is_own(
    tx: &Tx<'_>,
    scope: &Scope,
    group: Option<ContentGroupId>,
) -> Result<bool, Error> {
    match group {
        Some(group) => scope.contains_group(tx, group).await,
        None => Ok(scope.content_groups.is_none()),
    }
}

/// Deletes an asset. Unless `is_forced`, an asset in use is kept.
pub async fn delete(
    caller: &Caller,
    id: AssetId,
    is_forced: bool,
    expected: VersionPrecondition,
) -> Result<(), Error> {
    let own = caller.clone();
    let write = async move |tx: &WriteTx<'_>| {
        let scope = own.scope();
        let asset = find_for_update(tx, &scope, id, &expected).await?;
        if !is_forced && asset_usage::exist(tx, scope.workspace, asset.key).await? {
            return Err(in_use(&uses(tx, &scope, &asset).await?).into());
        }
        let base_url = &own.service().settings().assets.base_url;
        let was_last = delete_in(tx, own.environment(), &scope, &asset, base_url).await?;
        Ok((asset, was_last))
    };
    let (asset, was_last) = caller.write("assets.delete", write).await?;
    caller.service().assets().by_key.remove(&asset.key);
    if was_last {
        let name = FileName::original(caller.workspace(), asset.file.id);
        delete_file(caller.service(), &name).await;
    }
    Ok(())
}

/// Deletes an asset, also one in use. Returns true if its file is a leftover then.
pub(crate) async fn delete_in(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    asset: &Asset,
    base_url: &str,
) -> Result<bool, Error> {
    let workspace = scope.workspace;
    let was_last = assets::delete(tx, workspace, asset, environment.now()).await?;
    let body = AssetBody::new(asset, base_url);
    let changes = AuditChanges::deleted(&body);
    audit::record(tx, environment, scope, AuditAction::AssetDelete, asset.id, changes);
    let change = ResourceChange::AssetRemoved(path_of(tx, workspace, asset).await?);
    append_event(tx, environment, workspace, change, &body).await?;
    Ok(was_last)
}

/// The limit on pieces that the rejection of a deletion names.
const NAMED_USES: usize = 20;

/// Returns the rejection of the deletion of an asset in use. It names the pieces that the caller
/// sees.
fn in_use(uses: &[ReferringPiece]) -> Rejection {
    let mut titles: Vec<String> = Vec::new();
    for piece in uses {
        let shown = format!("{:?} ({})", piece.title.as_str(), piece.id);
        if !titles.contains(&shown) && titles.len() < NAMED_USES {
            titles.push(shown);
        }
    }
    let detail = if titles.is_empty() {
        "the asset is in use: send force=true to delete it nevertheless".to_owned()
    } else {
        let titles = titles.join(", ");
        format!("the asset is in use by {titles}: send force=true to delete it nevertheless")
    };
    Rejection::new(Reason::AssetInUse, detail)
}
