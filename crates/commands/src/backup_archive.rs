//! A backup with the files of assets: a tar archive of the database's backup, which comes first,
//! and of the files. Without files, a backup is the database's backup itself.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use futures_util::TryStreamExt;
use galley_assets::{AssetStore, FileName, HashingReader, StoreError};
use galley_domain::AssetFileId;
use galley_domain::WorkspaceId;
use galley_domain::asset::AssetFile;
use galley_storage::{Database, Snapshot, StagedFile, Tx, assets, remove_asset_file};
use indicatif::ProgressBar;
use sha2::{Digest, Sha256};
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;
use tokio_util::io::{StreamReader, SyncIoBridge};

use crate::{private_files, progress};

/// The name of the database's backup in an archive.
const DATABASE: &str = "galley.db";

/// The folder of the files in an archive.
const FILES: &str = "assets/";

/// The rows of one read.
const PAGE: i64 = 500;

/// The bytes that are copied at a time.
const CHUNK_SIZE: usize = 256 * 1024;

/// The place of the signature of a tar archive, and the signature.
const SIGNATURE: (usize, &[u8]) = (257, b"ustar");

/// Returns true if a file begins as a tar archive.
pub(crate) fn is_archive(path: &Path) -> io::Result<bool> {
    let (at, signature) = SIGNATURE;
    let mut start = Vec::new();
    File::open(path)?.take((at + signature.len()) as u64).read_to_end(&mut start)?;
    Ok(start.get(at..) == Some(signature))
}

/// The files of the assets in a backup of a database, by workspace and id.
struct ArchivedFiles {
    snapshot: Snapshot,
    after: Option<(WorkspaceId, AssetFileId)>,
}

impl ArchivedFiles {
    fn of(database: &Path) -> anyhow::Result<Self> {
        Ok(Self { snapshot: Snapshot::of_file(database)?, after: None })
    }

    /// Returns the next files, or none after the last ones.
    async fn next(&mut self) -> anyhow::Result<Vec<(WorkspaceId, AssetFile)>> {
        let after = self.after;
        let read = async move |tx: &Tx<'_>| assets::list_files(tx, after, PAGE).await;
        let found: Vec<_> =
            self.snapshot.read::<_, galley_storage::Error, _>("assets.files", read).await?;
        self.after = found.last().map(|(workspace, file)| (*workspace, file.id)).or(after);
        Ok(found)
    }

    /// Returns the number of files and their bytes.
    async fn totals(database: &Path) -> anyhow::Result<(u64, u64)> {
        let mut files = Self::of(database)?;
        let (mut count, mut bytes) = (0, 0);
        loop {
            let page = files.next().await?;
            if page.is_empty() {
                return Ok((count, bytes));
            }
            count += page.len() as u64;
            bytes += page.iter().map(|(_, file)| size_of(file)).sum::<u64>();
        }
    }
}

fn size_of(file: &AssetFile) -> u64 {
    u64::try_from(file.size).unwrap_or_default()
}

/// The result of a backup of files.
#[derive(Debug, Default)]
pub(crate) struct ArchiveReport {
    /// The number of files in the archive.
    pub(crate) files: u64,
    /// The files that the store lacks or that are damaged.
    pub(crate) problems: Vec<String>,
}

/// Returns true if a backup of a database names files of assets.
pub(crate) async fn names_files(backup: &Path) -> anyhow::Result<bool> {
    Ok(!ArchivedFiles::of(backup)?.next().await?.is_empty())
}

/// Writes an archive of the backup of a database and the files of its assets, and publishes it.
pub(crate) async fn write(
    database: &Database,
    store: &AssetStore,
    backup: &Path,
    mut to: StagedFile,
) -> anyhow::Result<ArchiveReport> {
    let (mut report, mut gone) = (ArchiveReport::default(), Vec::new());
    let mut files = ArchivedFiles::of(backup)?;
    loop {
        let page = files.next().await?;
        if page.is_empty() {
            break;
        }
        for (workspace, file) in page {
            let name = FileName::original(workspace, file.id);
            if !matches!(store.size(&name).await, Err(StoreError::NotFound)) {
                continue;
            }
            // A deletion since the backup of the database has removed the file.
            if is_deleted(database, &name).await? {
                gone.push(name);
            } else {
                report.problems.push(format!("{name}: is missing in the store"));
            }
        }
    }
    drop(files);
    for name in gone {
        remove_asset_file(backup, name.workspace, name.file)?;
    }
    append_all(store, backup, to.path(), &mut report).await?;
    to.publish()?;
    Ok(report)
}

async fn is_deleted(database: &Database, name: &FileName) -> galley_storage::Result<bool> {
    let (workspace, id) = (name.workspace, name.file);
    let find = async move |tx: &Tx<'_>| assets::existing_files(tx, workspace, &[id]).await;
    let found: galley_storage::Result<_> = database.read("assets.existing", find).await;
    Ok(found?.is_empty())
}

async fn append_all(
    store: &AssetStore,
    backup: &Path,
    to: &Path,
    report: &mut ArchiveReport,
) -> anyhow::Result<()> {
    let (_, bytes) = ArchivedFiles::totals(backup).await?;
    let bar = progress::bytes_bar(bytes);
    let target = File::options().write(true).open(to)?;
    let mut archive = tar::Builder::new(BufWriter::with_capacity(CHUNK_SIZE, target));
    let path = backup.to_owned();
    let (mut archive, mut files) = spawn_blocking(move || {
        archive.append_path_with_name(&path, DATABASE)?;
        Ok::<_, anyhow::Error>((archive, ArchivedFiles::of(&path)?))
    })
    .await??;
    loop {
        let page = files.next().await?;
        if page.is_empty() {
            break;
        }
        for (workspace, file) in page {
            let name = FileName::original(workspace, file.id);
            let stream = match store.stream(&name, 0..size_of(&file)).await {
                Err(StoreError::NotFound) => continue,
                found => found?,
            };
            let stream = StreamReader::new(stream.map_err(io::Error::other));
            let (shown, bytes) = (name.to_string(), size_of(&file));
            let mut bytes_of = HashingReader::new(SyncIoBridge::new(stream));
            let append = move || {
                let mut header = tar::Header::new_gnu();
                header.set_size(bytes);
                header.set_mode(0o600);
                archive.append_data(&mut header, format!("{FILES}{shown}"), &mut bytes_of)?;
                Ok::<_, io::Error>((archive, bytes_of.into_sha256()))
            };
            let (returned, hash) =
                spawn_blocking(append).await?.with_context(|| format!("{name}"))?;
            archive = returned;
            if hash != file.sha256 {
                report.problems.push(format!("{name}: has another SHA-256 than its row"));
            }
            report.files += 1;
            bar.inc(bytes);
        }
    }
    let finish = move || archive.into_inner()?.flush();
    spawn_blocking(finish).await??;
    bar.finish_and_clear();
    Ok(())
}

/// Extracts the database of an archive into a new file.
pub(crate) async fn extract_database(archive: &Path, to: &Path) -> anyhow::Result<()> {
    let (archive, to) = (archive.to_owned(), to.to_owned());
    let extract = move || {
        let mut archive = tar::Archive::new(BufReader::new(File::open(&archive)?));
        let mut first = archive.entries()?.next().context("the archive is empty")??;
        ensure!(first.path()? == Path::new(DATABASE), "the archive is no backup of galley");
        let mut target = private_files::create(&to).with_context(|| format!("{}", to.display()))?;
        io::copy(&mut first, &mut target)?;
        target.flush()?;
        Ok(())
    };
    spawn_blocking(extract).await?
}

/// Reads the files of an archive, and writes them into a store, if one is given. Compares the
/// SHA-256 of each with its row in `database`. Returns the files without a match.
pub(crate) async fn read_files(
    archive: &Path,
    database: &Path,
    store: Option<AssetStore>,
) -> anyhow::Result<ArchiveReport> {
    let (_, bytes) = ArchivedFiles::totals(database).await?;
    let bar = progress::bytes_bar(bytes);
    let (archive, database, shown) = (archive.to_owned(), database.to_owned(), bar.clone());
    let handle = Handle::current();
    let read = move || read_files_on(&handle, &archive, &database, store.as_ref(), &shown);
    let report = spawn_blocking(read).await??;
    bar.finish_and_clear();
    Ok(report)
}

fn read_files_on(
    handle: &Handle,
    archive: &Path,
    database: &Path,
    store: Option<&AssetStore>,
    bar: &ProgressBar,
) -> anyhow::Result<ArchiveReport> {
    let mut report = ArchiveReport::default();
    let mut files = ArchivedFiles::of(database)?;
    let mut expected = Vec::new().into_iter();
    let mut next_expected = || -> anyhow::Result<Option<(WorkspaceId, AssetFile)>> {
        if let Some(next) = expected.next() {
            return Ok(Some(next));
        }
        expected = handle.block_on(files.next())?.into_iter();
        Ok(expected.next())
    };
    let missing = |(workspace, file): &(WorkspaceId, AssetFile)| {
        format!("{}: is missing in the backup", FileName::original(*workspace, file.id))
    };
    let mut archive = tar::Archive::new(BufReader::with_capacity(CHUNK_SIZE, File::open(archive)?));
    for entry in archive.entries()?.skip(1) {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        let name = path.to_str().and_then(|path| path.strip_prefix(FILES)?.parse().ok());
        let Some(name) = name.filter(|name: &FileName| name.rendition.is_none()) else {
            bail!("the archive has the foreign entry {}", path.display());
        };
        // Both are in the order of workspaces and ids.
        let (_, file) = loop {
            let next = next_expected()?;
            let next = next.with_context(|| format!("{name}: no asset has this file"))?;
            if FileName::original(next.0, next.1.id) == name {
                break next;
            }
            report.problems.push(missing(&next));
        };
        let mut writer = store.map(|store| store.writer(&name));
        let mut hash = Sha256::new();
        let mut chunk = vec![0; CHUNK_SIZE];
        loop {
            let read = entry.read(&mut chunk)?;
            if read == 0 {
                break;
            }
            hash.update(&chunk[..read]);
            bar.inc(read as u64);
            if let Some(writer) = &mut writer {
                handle.block_on(writer.write(Bytes::copy_from_slice(&chunk[..read])))?;
            }
        }
        if hash.finalize()[..] != file.sha256 {
            if let Some(writer) = writer {
                handle.block_on(writer.abort());
            }
            report.problems.push(format!("{name}: has another SHA-256 than its row"));
            continue;
        }
        if let Some(writer) = writer {
            handle.block_on(writer.finish())?;
        }
        report.files += 1;
    }
    while let Some(next) = next_expected()? {
        report.problems.push(missing(&next));
    }
    Ok(report)
}
