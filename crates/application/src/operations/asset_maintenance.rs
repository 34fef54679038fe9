//! The comparison of the store of assets with the database, copies of its files, and the deletion
//! of unused assets.

use std::collections::{HashMap, HashSet};
use std::vec::IntoIter;

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
use crate::operations::asset_files::remove_stored;
use crate::operations::assets::delete_in;
use crate::scope::Scope;

/// The rows of one read.
const PAGE: i64 = 500;

/// All assets of a workspace, in each view.
pub(crate) const ALL: VisibleAssets<'static> =
    VisibleAssets { view: ContentView::Current, within: None };

/// The files of all workspaces, by workspace and id.
pub struct AssetFiles<'d> {
    source: RowSource<'d>,
    after: Option<(WorkspaceId, AssetFileId)>,
    page: IntoIter<(WorkspaceId, AssetFile)>,
}

enum RowSource<'d> {
    Database(&'d Database),
    Snapshot(Snapshot),
}

impl<'d> AssetFiles<'d> {
    /// Returns the files of a database.
    pub fn of_database(database: &'d Database) -> Self {
        Self::new(RowSource::Database(database))
    }

    /// Returns the files of a snapshot.
    pub fn of_snapshot(snapshot: Snapshot) -> Self {
        Self::new(RowSource::Snapshot(snapshot))
    }

    fn new(source: RowSource<'d>) -> Self {
        Self { source, after: None, page: Vec::new().into_iter() }
    }

    /// Returns the next file.
    pub async fn next(&mut self) -> Result<Option<(FileName, AssetFile)>, Error> {
        if self.page.len() == 0 {
            let after = self.after;
            let read =
                async move |tx: &Tx<'_>| Ok::<_, Error>(assets::list_files(tx, after, PAGE).await?);
            let files = match &self.source {
                RowSource::Database(database) => database.read_long("assets.files", read).await?,
                RowSource::Snapshot(snapshot) => snapshot.read("assets.files", read).await?,
            };
            self.page = files.into_iter();
        }
        let Some((workspace, file)) = self.page.next() else { return Ok(None) };
        self.after = Some((workspace, file.id));
        Ok(Some((FileName::original(workspace, file.id), file)))
    }

    /// Returns the bytes of all further files.
    pub async fn bytes(mut self) -> Result<u64, Error> {
        let mut bytes = 0;
        while let Some((_, file)) = self.next().await? {
            bytes += file.bytes();
        }
        Ok(bytes)
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
    if size != file.bytes() {
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
    let (mut some, mut last) = (HashMap::<WorkspaceId, Vec<AssetFileId>>::new(), None);
    let mut listed = store.list();
    while let Some(found) = listed.next().await {
        let found = found?;
        let name = FileName { rendition: None, ..found.name };
        // A file and its renditions follow one another.
        if found.created_at_ms >= before.ms() || last.as_ref() == Some(&name) {
            continue;
        }
        if own.contains(&name.workspace) {
            let of_workspace = some.entry(name.workspace).or_default();
            of_workspace.push(name.file);
            if of_workspace.len() >= FILES_PER_READ {
                let ids = std::mem::take(of_workspace);
                unknown.orphans.extend(orphans(database, name.workspace, ids).await?);
            }
        } else {
            unknown.foreign += 1;
        }
        last = Some(name);
    }
    for (workspace, ids) in some {
        unknown.orphans.extend(orphans(database, workspace, ids).await?);
    }
    Ok(unknown)
}

/// The files that are looked up at a time.
const FILES_PER_READ: usize = 500;

/// Returns those of the files that neither a row nor a leftover names.
async fn orphans(
    database: &Database,
    workspace: WorkspaceId,
    ids: Vec<AssetFileId>,
) -> Result<Vec<FileName>, Error> {
    let read = async move |tx: &Tx<'_>| {
        let mut known = assets::existing_files(tx, workspace, &ids).await?;
        known.extend(assets::existing_leftovers(tx, workspace, &ids).await?);
        let known: HashSet<_> = known.into_iter().collect();
        let unknown = ids.iter().copied().filter(|id| !known.contains(id));
        Ok::<_, Error>(unknown.map(|id| FileName::original(workspace, id)).collect())
    };
    database.read("assets.known", read).await
}

/// Copies a file into a writer. Returns false, and leaves nothing, if its SHA-256 differs from that
/// of its row.
pub async fn copy_file(
    from: &AssetStore,
    name: &FileName,
    file: &AssetFile,
    mut to: FileWriter,
) -> Result<bool, Error> {
    let mut stream = from.stream(name, 0..file.bytes()).await?;
    while let Some(chunk) = stream.try_next().await? {
        to.write(chunk).await?;
    }
    Ok(to.finish_if(&file.sha256).await?)
}

/// The assets of a workspace, by their creation.
#[derive(Debug)]
pub struct AssetList<'d> {
    database: &'d Database,
    workspace: WorkspaceId,
    filter: AssetFilter,
    after: Option<String>,
    page: IntoIter<Asset>,
}

impl<'d> AssetList<'d> {
    /// Returns the assets that a filter selects.
    pub fn new(database: &'d Database, workspace: WorkspaceId, filter: AssetFilter) -> Self {
        Self { database, workspace, filter, after: None, page: Vec::new().into_iter() }
    }

    /// Returns the next asset.
    pub async fn next(&mut self) -> Result<Option<Asset>, Error> {
        if self.page.len() == 0 {
            let page = IdPage { after: self.after.clone(), ..IdPage::first(PAGE) };
            let (workspace, filter) = (self.workspace, self.filter.clone());
            let read = async move |tx: &Tx<'_>| {
                Ok::<_, Error>(assets::list(tx, workspace, ALL, &filter, &page).await?)
            };
            let found = self.database.read_long("assets.list", read).await?;
            self.page = found.into_iter();
        }
        let next = self.page.next();
        if let Some(asset) = &next {
            self.after = Some(asset.id.to_string());
        }
        Ok(next)
    }
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
