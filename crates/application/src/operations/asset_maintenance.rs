//! The comparison of the store of assets with the database, copies of its files, and the deletion
//! of unused assets.

use std::collections::HashSet;

use futures_util::{StreamExt, TryStreamExt};
use galley_assets::{AssetStore, FileName, FileWriter, StoreError};
use galley_domain::asset::{Asset, AssetFile};
use galley_domain::publication::ContentView;
use galley_domain::{AssetFileId, Timestamp, WorkspaceId};
use galley_storage::asset_usage::{self, VisibleAssets};
use galley_storage::assets::AssetFilter;
use galley_storage::{Database, IdPage, Snapshot, Tx, WriteTx, assets, workspaces};
use sha2::{Digest, Sha256};

use crate::environment::Environment;
use crate::error::Error;
use crate::operations::assets::{delete_in, remove_stored};
use crate::scope::Scope;

/// The rows of one read.
const PAGE: i64 = 500;

/// All assets of a workspace, in each view.
pub(crate) const ALL: VisibleAssets<'static> =
    VisibleAssets { view: ContentView::Current, within: None };

/// The files of all workspaces, page by page.
pub struct FilePages<'d> {
    source: FileSource<'d>,
    after: Option<(WorkspaceId, AssetFileId)>,
}

enum FileSource<'d> {
    Database(&'d Database),
    Snapshot(Snapshot),
}

impl<'d> FilePages<'d> {
    /// Returns the files from the first on.
    pub fn new(database: &'d Database) -> Self {
        Self { source: FileSource::Database(database), after: None }
    }

    /// Returns the files of a snapshot from the first on.
    pub fn of_snapshot(snapshot: Snapshot) -> Self {
        Self { source: FileSource::Snapshot(snapshot), after: None }
    }

    /// Returns the next files, or none after the last ones.
    pub async fn next(&mut self) -> Result<Vec<(FileName, AssetFile)>, Error> {
        let after = self.after;
        let read =
            async move |tx: &Tx<'_>| Ok::<_, Error>(assets::list_files(tx, after, PAGE).await?);
        let files = match &self.source {
            FileSource::Database(database) => database.read_long("assets.files", read).await?,
            FileSource::Snapshot(snapshot) => snapshot.read("assets.files", read).await?,
        };
        self.after = files.last().map(|(workspace, file)| (*workspace, file.id)).or(after);
        let named =
            |(workspace, file): (_, AssetFile)| (FileName::original(workspace, file.id), file);
        Ok(files.into_iter().map(named).collect())
    }
}

/// The defect of a stored file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileDefect {
    /// The store does not have it.
    Missing,
    /// It has another size.
    Size(u64),
    /// It has another SHA-256.
    Hash,
}

/// Compares a file in the store with its row. Reads its bytes if `with_hash` is set.
pub async fn check_file(
    store: &AssetStore,
    name: &FileName,
    file: &AssetFile,
    with_hash: bool,
) -> Result<Option<FileDefect>, Error> {
    let size = match store.size(name).await {
        Err(StoreError::NotFound) => return Ok(Some(FileDefect::Missing)),
        found => found?,
    };
    if i64::try_from(size) != Ok(file.size) {
        return Ok(Some(FileDefect::Size(size)));
    }
    if !with_hash {
        return Ok(None);
    }
    let mut stream = store.stream(name, 0..size).await?;
    let mut hash = Sha256::new();
    while let Some(chunk) = stream.try_next().await? {
        hash.update(&chunk);
    }
    Ok((hash.finalize()[..] != file.sha256).then_some(FileDefect::Hash))
}

/// The files of a store that no row names.
#[derive(Debug, Default)]
pub struct UnknownFiles {
    /// The files of the database's workspaces.
    pub orphans: Vec<FileName>,
    /// The number of files of other workspaces, perhaps of another installation.
    pub foreign: u64,
}

/// Finds the files of a store that neither a row nor a leftover names, without those that are
/// newer than `before`.
pub async fn unknown_files(
    database: &Database,
    store: &AssetStore,
    before: Timestamp,
) -> Result<UnknownFiles, Error> {
    let read = async |tx: &Tx<'_>| Ok::<_, Error>(workspaces::list(tx).await?);
    let workspaces = database.read("workspaces.list", read).await?;
    let own: HashSet<WorkspaceId> = workspaces.into_iter().map(|(id, _)| id).collect();
    let mut unknown = UnknownFiles::default();
    let mut last = None;
    let mut listed = store.list();
    while let Some(found) = listed.next().await {
        let found = found?;
        let name = FileName { rendition: None, ..found.name };
        // A file and its renditions follow one another.
        if found.created_at_ms >= before.ms() || last.as_ref() == Some(&name) {
            continue;
        }
        last = Some(name.clone());
        let (workspace, id) = (name.workspace, name.file);
        if !own.contains(&workspace) {
            unknown.foreign += 1;
            continue;
        }
        let is_known = async move |tx: &Tx<'_>| {
            Ok::<_, Error>(assets::is_known_file(tx, workspace, id).await?)
        };
        if !database.read("assets.known", is_known).await? {
            unknown.orphans.push(name);
        }
    }
    Ok(unknown)
}

/// Copies a file into a writer. Returns false, and leaves nothing, if its SHA-256 differs from that
/// of its row.
pub async fn copy_file(
    from: &AssetStore,
    name: &FileName,
    file: &AssetFile,
    mut to: FileWriter,
) -> Result<bool, Error> {
    let mut stream = from.stream(name, 0..u64::try_from(file.size).unwrap_or_default()).await?;
    while let Some(chunk) = stream.try_next().await? {
        to.write(chunk).await?;
    }
    Ok(to.finish_if(&file.sha256).await?)
}

/// The unused assets of a workspace, page by page.
#[derive(Debug)]
pub struct UnusedAssets<'d> {
    database: &'d Database,
    workspace: WorkspaceId,
    /// The time before which they were created.
    before: Timestamp,
    after: Option<String>,
}

impl<'d> UnusedAssets<'d> {
    /// Returns the assets that were created before a time, and to which no piece refers.
    pub fn new(database: &'d Database, workspace: WorkspaceId, before: Timestamp) -> Self {
        Self { database, workspace, before, after: None }
    }

    /// Returns the next assets, or none after the last ones.
    pub async fn next(&mut self) -> Result<Vec<Asset>, Error> {
        let filter = AssetFilter { is_used: Some(false), ..AssetFilter::default() };
        let found = list(self.database, self.workspace, filter, &mut self.after).await?;
        let before = self.before;
        // Assets are listed by creation.
        Ok(found.into_iter().take_while(|asset| asset.created_at < before).collect())
    }
}

/// Lists the assets of a workspace after a position, and advances it.
pub async fn list(
    database: &Database,
    workspace: WorkspaceId,
    filter: AssetFilter,
    after: &mut Option<String>,
) -> Result<Vec<Asset>, Error> {
    let page = IdPage { after: after.clone(), ..IdPage::first(PAGE) };
    let read = async move |tx: &Tx<'_>| {
        Ok::<_, Error>(assets::list(tx, workspace, ALL, &filter, &page).await?)
    };
    let found = database.read_long("assets.list", read).await?;
    *after = found.last().map(|asset| asset.id.to_string()).or(after.take());
    Ok(found)
}

/// Deletes an asset if it is still unused. Returns false for one that is used or deleted by now.
pub async fn delete_unused(
    database: &Database,
    store: &AssetStore,
    environment: &Environment,
    workspace: WorkspaceId,
    asset: &Asset,
    base_url: &str,
) -> Result<bool, Error> {
    let (environment, id, base_url) = (environment.clone(), asset.id, base_url.to_owned());
    let write = async move |tx: &WriteTx<'_>| {
        let found = assets::find_for_update(tx, workspace, id, ALL).await?;
        let Some(asset) = found else { return Ok(None) };
        if asset_usage::exist(tx, workspace, asset.key).await? {
            return Ok(None);
        }
        let scope = Scope::whole(workspace);
        delete_in(tx, &environment, &scope, &asset, &base_url).await.map(Some)
    };
    let deleted = database.write::<_, Error, _>("assets.prune", write).await?;
    if deleted == Some(true) {
        remove_stored(database, store, &FileName::original(workspace, asset.file.id)).await?;
    }
    Ok(deleted.is_some())
}
