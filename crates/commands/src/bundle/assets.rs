//! The assets of a bundle: their data in files of up to 1,000, and each stored file once, named
//! after its SHA-256.

use std::path::{Path, PathBuf};

use anyhow::Context;
use galley_application::Error;
use galley_application::operations::asset_import::{AssetDestination, RestoredAsset, file_chunks};
use galley_assets::{AssetStore, FileName};
use galley_domain::WorkspaceId;
use galley_domain::asset::FileHash;
use galley_domain::publication::ContentView;
use galley_storage::asset_usage::VisibleAssets;
use galley_storage::assets::{self, AssetFilter};
use galley_storage::{IdPage, Snapshot, Tx};

use super::encode::text;
use super::files::{file, json_files};
use super::format::BundleAsset;
use crate::export::folder::ExportFolder;
use crate::progress;

/// The folder of the data.
const FOLDER: &str = "assets";

/// The folder of the files.
const FILES: &str = "assets/files";

/// The number of assets in a file.
const ASSETS: i64 = 1_000;

/// Writes the assets, oldest first, and their files.
pub(super) async fn export(
    snapshot: &Snapshot,
    workspace: WorkspaceId,
    store: &AssetStore,
    folder: &mut ExportFolder,
) -> anyhow::Result<()> {
    let mut after = None;
    let bar = progress::bar("files", 0);
    loop {
        let page = IdPage { after: after.clone(), ..IdPage::first(ASSETS) };
        let read = async move |tx: &Tx<'_>| {
            let all = VisibleAssets { view: ContentView::Current, within: None };
            let found = assets::list(tx, workspace, all, &AssetFilter::default(), &page).await?;
            Ok::<_, Error>(found)
        };
        let found = snapshot.read("export.assets", read).await?;
        let (Some(first), Some(last)) = (found.first(), found.last()) else { break };
        let path = format!("{FOLDER}/{}.json", first.id);
        after = Some(last.id.to_string());
        bar.inc_length(found.len() as u64);
        for asset in &found {
            let stored = FileName::original(workspace, asset.file.id);
            let name = format!("{FILES}/{}", asset.file.hash());
            folder.write_asset(&name, store, &stored, &asset.file).await;
            bar.inc(1);
        }
        let listed: Vec<_> = found.into_iter().map(BundleAsset::from).collect();
        folder.write(&path, &text(&listed)?);
    }
    bar.finish_and_clear();
    Ok(())
}

/// Restores the assets that the workspace lacks. Returns their number, and messages about files
/// with problems.
pub(super) async fn restore(
    destination: &AssetDestination,
    bundle: &Path,
) -> anyhow::Result<(u64, Vec<String>)> {
    let (mut restored, mut problems) = (0, Vec::new());
    let bar = progress::bar("files", 0);
    let in_folder = |path: &PathBuf| path.parent() == Some(&bundle.join(FOLDER));
    for path in json_files(&bundle.join(FOLDER))?.into_iter().filter(in_folder) {
        let listed: Vec<BundleAsset> = match file(&path) {
            Ok(listed) => listed,
            Err(problem) => {
                problems.push(format!("{problem:#}"));
                continue;
            }
        };
        bar.inc_length(listed.len() as u64);
        for asset in listed {
            let id = asset.id;
            match restore_one(destination, bundle, asset).await {
                Ok(is_new) => restored += u64::from(is_new),
                Err(problem) => problems.push(format!("{}: {id}: {problem:#}", path.display())),
            }
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    Ok((restored, problems))
}

async fn restore_one(
    destination: &AssetDestination,
    bundle: &Path,
    asset: BundleAsset,
) -> anyhow::Result<bool> {
    let hash: FileHash = asset.hash.parse().map_err(|_| anyhow::anyhow!("hash is malformed"))?;
    let path = bundle.join(FILES).join(hash.to_string());
    let metadata = path.symlink_metadata().with_context(|| format!("{}", path.display()))?;
    anyhow::ensure!(metadata.is_file(), "{} is not a regular file", path.display());
    let opened = std::fs::File::open(&path).with_context(|| format!("{}", path.display()))?;
    let asset = RestoredAsset {
        id: asset.id,
        key: asset.key.parse().map_err(|_| anyhow::anyhow!("key is malformed"))?,
        filename: asset.filename,
        alt: asset.alt,
        content_group_id: asset.content_group_id,
        created_at: asset.created_at,
        sha256: hash.0,
    };
    Ok(destination.restore(asset, file_chunks(opened)).await?)
}
