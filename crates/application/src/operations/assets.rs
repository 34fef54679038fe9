//! Assets. An upload writes the file into the store first, and then the rows in a transaction. A
//! deletion removes the rows first. So each row has its file, and a file without a row is left by
//! an interruption, and is removed by the housekeeping.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::stream::BoxStream;
use galley_api_types::asset::{AssetBody, AssetChange};
use galley_api_types::problem::{Issue, Step};
use galley_assets::image::ENCODED_SIZE_LIMIT;
use galley_assets::{
    AssetStore, FileName, FileType, FileWriter, ImageFormat, StoreError, WrittenFile,
};
use galley_domain::asset::{Asset, AssetFile, AssetFilename, Rendition};
use galley_domain::audit::AuditAction;
use galley_domain::content_group::GroupPath;
use galley_domain::event::ResourceChange;
use galley_domain::text::ShortText;
use galley_domain::{AssetFileId, AssetId, AssetKey, ContentGroupId, Invalid, WorkspaceId};
use galley_storage::asset_usage::{self, ReferringPiece, VisibleAssets};
pub use galley_storage::assets::AssetFilter;
use galley_storage::assets::FileInsertion;
use galley_storage::{Database, IdPage, Tx, WriteTx, assets, content_groups, event_append};

use crate::asset_resources::{
    AssetImages, AssetSettings, CACHED_SIZE_LIMIT, ServedAsset, UploadMemory,
};
use crate::audit::{self, AuditChanges};
use crate::caller::Caller;
use crate::environment::Environment;
use crate::error::Error;
use crate::idempotency::{self, CreatedResponse, IdempotentRequest, Respond};
use crate::operations::event;
use crate::precondition::VersionPrecondition;
use crate::rejection::{Reason, Rejection};
use crate::scope::Scope;
use crate::service::Service;

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

/// The time after which the file of an upload without an end is removed.
pub(crate) const UPLOAD_LIMIT: Duration = Duration::from_hours(24);

/// An upload whose bytes are arriving.
#[derive(Debug)]
pub struct Upload {
    name: FileName,
    writer: FileWriter,
    size_limit: u64,
    /// The memory of the parts that are being sent to the store.
    _memory: UploadMemory,
}

impl Upload {
    /// Begins an upload. A size that the client states is checked first. Waits while other uploads
    /// have the memory.
    pub async fn begin(caller: &Caller, stated_size: Option<u64>) -> Result<Self, Error> {
        Self::begin_for(caller, stated_size, UPLOAD_LIMIT).await
    }

    /// Begins an upload whose file is removed after `limit`, if it has no row then.
    pub(crate) async fn begin_for(
        caller: &Caller,
        stated_size: Option<u64>,
        limit: Duration,
    ) -> Result<Self, Error> {
        let service = caller.service();
        let settings = &service.settings().assets;
        let size_limit = settings.size_limit;
        check_size(stated_size.unwrap_or_default(), size_limit)?;
        let memory = service.assets().upload_memory(stated_size).await?;
        let (database, environment) = (service.database(), caller.environment());
        let name = begin_file(database, environment, caller.workspace(), limit).await?;
        let writer = settings.store.writer(&name);
        Ok(Self { name, writer, size_limit, _memory: memory })
    }

    /// Returns the number of bytes that were written.
    pub(crate) const fn size(&self) -> u64 {
        self.writer.size()
    }

    /// Appends bytes.
    pub async fn write(&mut self, bytes: Bytes) -> Result<(), Error> {
        check_size(self.writer.size() + bytes.len() as u64, self.size_limit)?;
        Ok(self.writer.write(bytes).await?)
    }

    /// Ends an upload that is rejected, or whose client has disconnected.
    pub async fn abort(self, caller: &Caller) {
        self.writer.abort().await;
        delete_file(caller.service(), &self.name).await;
    }

    /// Completes the file. Returns its name.
    pub(crate) async fn store(self) -> Result<FileName, Error> {
        self.writer.finish().await?;
        Ok(self.name)
    }

    /// Completes the file, and detects its type.
    pub async fn finish(self, caller: &Caller) -> Result<UploadedFile, Error> {
        let Self { name, writer, .. } = self;
        let written = writer.finish().await?;
        let service = caller.service();
        let store = &service.settings().assets.store;
        let file = inspect(store, &service.assets().images, &name, written).await?;
        Ok(UploadedFile { name, file })
    }
}

/// Names a new file. From here on, an interruption leaves a file that the housekeeping knows, and
/// removes after `limit`.
pub(crate) async fn begin_file(
    database: &Database,
    environment: &Environment,
    workspace: WorkspaceId,
    limit: Duration,
) -> Result<FileName, Error> {
    let file = AssetFileId::new(environment.new_id());
    let remove_at = environment.now().later(limit);
    let insert = async move |tx: &WriteTx<'_>| {
        Ok::<_, Error>(assets::insert_leftover(tx, workspace, file, remove_at).await?)
    };
    database.write("assets.begin", insert).await?;
    Ok(FileName::original(workspace, file))
}

pub(crate) fn check_size(size: u64, limit: u64) -> Result<(), Error> {
    if size <= limit {
        return Ok(());
    }
    let detail = format!("an asset may have at most {limit} bytes");
    Err(Rejection::new(Reason::PayloadTooLarge, detail).into())
}

/// A file in the store that has no row yet.
#[derive(Debug, Clone)]
pub struct UploadedFile {
    pub(crate) name: FileName,
    pub(crate) file: AssetFile,
}

impl UploadedFile {
    /// Returns the SHA-256 of its bytes.
    pub const fn sha256(&self) -> &[u8; 32] {
        &self.file.sha256
    }

    /// Deletes the file. Without success, the housekeeping does it later.
    pub async fn discard(&self, caller: &Caller) {
        delete_file(caller.service(), &self.name).await;
    }
}

/// Returns the properties of a stored file.
pub(crate) async fn inspect(
    store: &AssetStore,
    images: &AssetImages,
    name: &FileName,
    written: WrittenFile,
) -> Result<AssetFile, Error> {
    let FileType { media_type, image } = FileType::detect(&written.head);
    let stored = galley_assets::image::stored_dimensions(&written.head);
    let mut dimensions = stored.filter(|_| media_type.starts_with("image/"));
    let mut placeholder = None;
    if let Some(format) = image.filter(|_| written.size <= ENCODED_SIZE_LIMIT) {
        let bytes = store.read(name).await?;
        match images.inspect(bytes, format).await? {
            Ok((found, hash)) => (dimensions, placeholder) = (Some(found), Some(hash)),
            // The file is stored as it is, and has no renditions.
            Err(error) => tracing::debug!(%error, %name, "an image can't be read"),
        }
    }
    Ok(AssetFile {
        id: name.file,
        sha256: written.sha256,
        size: i64::try_from(written.size).unwrap_or(i64::MAX),
        media_type: media_type.to_owned(),
        dimensions: dimensions.map(|found| (found.width.into(), found.height.into())),
        placeholder,
    })
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

/// Removes a stored file whose creation of an asset has ended, if it has got no row: an equal file,
/// a replayed response and a rejection leave it without one.
pub(crate) async fn remove_unused<T>(
    database: &Database,
    store: &AssetStore,
    name: &FileName,
    created: &Result<T, Error>,
) {
    // A failed transaction may still be committed. The housekeeping decides later.
    if !matches!(created, Err(Error::Storage(_)))
        && matches!(has_row(database, name).await, Ok(false))
    {
        warn_of_failure(remove_stored(database, store, name).await, name);
    }
}

/// Logs a removal without success, which the housekeeping repeats.
fn warn_of_failure(removed: Result<(), Error>, name: &FileName) {
    if let Err(error) = removed {
        tracing::warn!(%error, %name, "a file of an asset could not be removed yet");
    }
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

/// Removes a file and its renditions from the store. Without success, the housekeeping does it
/// later.
pub(crate) async fn delete_file(service: &Service, name: &FileName) {
    warn_of_failure(remove_file(service, name).await, name);
}

/// Removes a file from the cache, and from the store.
async fn remove_file(service: &Service, name: &FileName) -> Result<(), Error> {
    service.assets().images.remove(name);
    remove_stored(service.database(), &service.settings().assets.store, name).await
}

/// Removes a file and its renditions from the store, and then the leftover.
pub(crate) async fn remove_stored(
    database: &Database,
    store: &AssetStore,
    name: &FileName,
) -> Result<(), Error> {
    store.delete(name).await?;
    let (workspace, file) = (name.workspace, name.file);
    let delete = async move |tx: &WriteTx<'_>| {
        Ok::<_, Error>(assets::delete_leftover(tx, workspace, file).await?)
    };
    database.write("assets.removed", delete).await
}

/// The time for which the properties of an asset are cached. Another node serves a deleted asset
/// for this time.
const LOOKUP_RETENTION: Duration = Duration::from_secs(1);

/// Finds the asset with this key.
pub async fn find_served(service: &Service, key: AssetKey) -> Result<ServedAsset, Error> {
    if let Some(found) = service.assets().by_key.get(&key)
        && found.0.elapsed() < LOOKUP_RETENTION
    {
        return Ok(found.1);
    }
    let find =
        async move |tx: &Tx<'_>| assets::find_by_key(tx, key).await?.ok_or_else(Error::not_found);
    let (workspace, asset) = service.database().read("assets.served", find).await?;
    let name = FileName::original(workspace, asset.file.id);
    let served = ServedAsset { asset, name };
    service.assets().by_key.insert(key, (Instant::now(), served.clone()));
    Ok(served)
}

/// The bytes of a file: in memory, or as they arrive from the store.
pub enum ServedBytes {
    /// All bytes of the file.
    Whole(Bytes),
    /// The requested part.
    Part(BoxStream<'static, Result<Bytes, StoreError>>),
}

impl std::fmt::Debug for ServedBytes {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ServedBytes").finish_non_exhaustive()
    }
}

/// Reads a part of the file of an asset. A small file is cached as a whole.
pub async fn read(
    service: &Service,
    served: &ServedAsset,
    range: std::ops::Range<u64>,
) -> Result<ServedBytes, Error> {
    let (store, name) = (&service.settings().assets.store, &served.name);
    let is_small = served.asset.file.bytes() <= CACHED_SIZE_LIMIT;
    if is_small {
        let read = async { Ok(store.read(name).await?) };
        return Ok(ServedBytes::Whole(service.assets().images.cached(name, read).await?));
    }
    Ok(ServedBytes::Part(store.stream(name, range).await?))
}

/// Returns a rendition of an image, which is rendered and stored at its first request.
pub async fn rendition(
    service: &Service,
    served: &ServedAsset,
    rendition: Rendition,
) -> Result<Bytes, Error> {
    let Some(format) = ImageFormat::of(&served.asset.file.media_type) else {
        return Err(no_rendition(rendition, "names no image that can be rendered"));
    };
    let name = FileName { rendition: Some(rendition.to_string()), ..served.name.clone() };
    let (store, images) = (&service.settings().assets.store, &service.assets().images);
    let render = async {
        match store.read(&name).await {
            Err(StoreError::NotFound) => {}
            found => return Ok(found?),
        }
        let original = store.read(&served.name).await?;
        let rendered = images.render(original, format, rendition).await?;
        let rendered = rendered.map_err(|error| no_rendition(rendition, &error.to_string()))?;
        let bytes = Bytes::from(rendered);
        store.put(&name, bytes.clone()).await?;
        // A deletion meanwhile has removed the file, perhaps before this rendition was there.
        if !has_row(service.database(), &served.name).await? {
            store.delete(&served.name).await?;
            return Err(Error::not_found());
        }
        Ok(bytes)
    };
    images.cached(&name, render).await
}

/// Returns true if a file has a row.
pub async fn has_row(database: &Database, name: &FileName) -> Result<bool, Error> {
    let (workspace, id) = (name.workspace, name.file);
    let find = async move |tx: &Tx<'_>| {
        Ok::<_, Error>(assets::existing_files(tx, workspace, &[id]).await?)
    };
    Ok(!database.read("assets.file", find).await?.is_empty())
}

/// Returns the rejection of a request for a rendition that can't be made.
fn no_rendition(rendition: Rendition, message: &str) -> Error {
    let parameter = if rendition.width.is_some() { "w" } else { "f" };
    Rejection::of_field(parameter, &Invalid::new("invalid_image", message)).into()
}

/// The leftovers that are removed at a time.
const LEFTOVERS_PER_READ: i64 = 100;

/// Removes the files of interrupted uploads and deletions from the store. Returns their number.
pub async fn remove_leftovers(service: &Service) -> Result<usize, Error> {
    let now = service.environment().now();
    let mut removed = 0;
    loop {
        let read = async move |tx: &Tx<'_>| {
            Ok::<_, Error>(assets::due_leftovers(tx, now, LEFTOVERS_PER_READ).await?)
        };
        let due = service.database().read("assets.leftovers", read).await?;
        if due.is_empty() {
            return Ok(removed);
        }
        for (workspace, file) in due {
            let claim = async move |tx: &WriteTx<'_>| {
                Ok::<_, Error>(assets::claim_leftover(tx, workspace, file).await?)
            };
            if service.database().write("assets.claim", claim).await? {
                remove_file(service, &FileName::original(workspace, file)).await?;
                removed += 1;
            }
        }
    }
}
