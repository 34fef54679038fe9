//! A backup with the files of assets: a tar archive of the files, and then of the database's
//! backup. Without files, a backup is the database's backup itself.
//!
//! The database comes last, without the assets that were deleted while their files were archived.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use galley_application::operations::asset_files::has_row;
use galley_application::operations::asset_maintenance::AssetFiles;
use galley_assets::{AssetStore, FileName, HashingReader, StoreError};
use galley_domain::asset::AssetFile;
use galley_storage::{Database, Snapshot, StagedFile, remove_asset_file};
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

/// Returns the files of the assets in a backup of a database.
fn files_in(database: &Path) -> anyhow::Result<AssetFiles<'static>> {
    Ok(AssetFiles::of_snapshot(Snapshot::of_file(database)?))
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
    Ok(files_in(backup)?.next().await?.is_some())
}

/// Writes an archive of the files of assets and the backup of their database, and publishes it.
pub(crate) async fn write(
    database: &Database,
    store: &AssetStore,
    backup: &Path,
    mut to: StagedFile,
) -> anyhow::Result<ArchiveReport> {
    let (mut report, mut gone) = (ArchiveReport::default(), Vec::new());
    let bar = progress::bytes_bar(files_in(backup)?.bytes().await?);
    let target = BufWriter::with_capacity(CHUNK_SIZE, File::options().write(true).open(to.path())?);
    let mut archive = tar::Builder::new(target);
    let mut files = files_in(backup)?;
    while let Some((name, file)) = files.next().await? {
        match stored_bytes(store, &name, &file).await? {
            Ok(bytes) => archive = append(archive, bytes, &name, &file, &mut report).await?,
            // A deletion since the backup of the database has removed the file.
            Err(_) if !has_row(database, &name).await? => gone.push(name),
            Err(problem) => report.problems.push(format!("{name}: {problem}")),
        }
        bar.inc(file.bytes());
    }
    drop(files);
    for name in gone {
        remove_asset_file(backup, name.workspace, name.file)?;
    }
    let backup = backup.to_owned();
    let finish = move || {
        archive.append_path_with_name(&backup, DATABASE)?;
        archive.into_inner()?.flush()
    };
    spawn_blocking(finish).await??;
    bar.finish_and_clear();
    to.publish()?;
    Ok(report)
}

/// Returns the bytes of a stored file, or its defect.
async fn stored_bytes(
    store: &AssetStore,
    name: &FileName,
    file: &AssetFile,
) -> anyhow::Result<Result<BoxStream<'static, io::Result<Bytes>>, &'static str>> {
    let found = match store.size(name).await {
        Err(StoreError::NotFound) => return Ok(Err("is missing in the store")),
        found => found?,
    };
    if found != file.bytes() {
        return Ok(Err("has another size in the store"));
    }
    match store.stream(name, 0..found).await {
        Err(StoreError::NotFound) => Ok(Err("is missing in the store")),
        stream => Ok(Ok(stream?.map_err(io::Error::other).boxed())),
    }
}

type Archive = tar::Builder<BufWriter<File>>;

/// Appends a file. A damaged one is in the archive nevertheless.
async fn append(
    mut archive: Archive,
    bytes: BoxStream<'static, io::Result<Bytes>>,
    name: &FileName,
    file: &AssetFile,
    report: &mut ArchiveReport,
) -> anyhow::Result<Archive> {
    let bytes = SyncIoBridge::new(StreamReader::new(bytes));
    let mut padded = HashingReader::new(PaddedReader { reader: bytes, remaining: file.bytes() });
    let (shown, size) = (name.to_string(), file.bytes());
    let append = move || {
        let mut header = tar::Header::new_gnu();
        header.set_size(size);
        header.set_mode(0o600);
        archive.append_data(&mut header, format!("{FILES}{shown}"), &mut padded)?;
        Ok::<_, io::Error>((archive, padded.into_sha256()))
    };
    let (archive, hash) = spawn_blocking(append).await??;
    if hash != file.sha256 {
        report.problems.push(format!("{name}: can't be read, or has another SHA-256 than its row"));
    }
    report.files += 1;
    Ok(archive)
}

/// A reader of exactly `remaining` bytes, as the header of an archive's entry states. After an
/// error, and after an early end, the bytes are zero.
struct PaddedReader<R> {
    reader: R,
    remaining: u64,
}

impl<R: Read> Read for PaddedReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let wanted = usize::try_from(self.remaining).unwrap_or(usize::MAX).min(into.len());
        let into = &mut into[..wanted];
        let read = match self.reader.read(into) {
            Ok(0) | Err(_) => {
                into.fill(0);
                wanted
            }
            Ok(read) => read,
        };
        self.remaining -= read as u64;
        Ok(read)
    }
}

/// Extracts the database of an archive into a new file.
pub(crate) async fn extract_database(archive: &Path, to: &Path) -> anyhow::Result<()> {
    let (archive, to) = (archive.to_owned(), to.to_owned());
    let extract = move || {
        let mut archive = tar::Archive::new(File::open(&archive)?);
        for entry in archive.entries_with_seek()? {
            let mut entry = entry?;
            if entry.path()? == Path::new(DATABASE) {
                ensure!(entry.header().entry_type().is_file(), "{DATABASE} is not a file");
                let target = private_files::create(&to);
                let mut target = target.with_context(|| format!("{}", to.display()))?;
                io::copy(&mut entry, &mut target)?;
                return Ok(target.flush()?);
            }
        }
        bail!("the archive is no backup of galley, or was cut off")
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
    let bar = progress::bytes_bar(files_in(database)?.bytes().await?);
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
    let mut files = files_in(database)?;
    let mut next_expected = || handle.block_on(files.next());
    let missing = |name: &FileName| format!("{name}: is missing in the backup");
    let mut archive = tar::Archive::new(BufReader::with_capacity(CHUNK_SIZE, File::open(archive)?));
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        if path == Path::new(DATABASE) {
            continue;
        }
        let name = path.to_str().and_then(|path| path.strip_prefix(FILES)?.parse().ok());
        let Some(name) = name.filter(|name: &FileName| name.rendition.is_none()) else {
            bail!("the archive has the foreign entry {}", path.display());
        };
        // Both are in the order of workspaces and ids.
        let (_, file) = loop {
            let next = next_expected()?;
            let next = next.with_context(|| format!("{name}: no asset has this file"))?;
            if next.0 == name {
                break next;
            }
            report.problems.push(missing(&next.0));
        };
        let is_file = entry.header().entry_type().is_file();
        ensure!(is_file && entry.size() == file.bytes(), "{name} has another size than its row");
        let mut writer = store.map(|store| store.writer(&name));
        let mut hash = Sha256::new();
        let mut chunk = vec![0; CHUNK_SIZE];
        loop {
            let read = entry.read(&mut chunk)?;
            if read == 0 {
                break;
            }
            bar.inc(read as u64);
            match &mut writer {
                Some(writer) => {
                    handle.block_on(writer.write(Bytes::copy_from_slice(&chunk[..read])))?;
                }
                None => hash.update(&chunk[..read]),
            }
        }
        let is_intact = match writer {
            Some(writer) => handle.block_on(writer.finish_if(&file.sha256))?,
            None => hash.finalize()[..] == file.sha256,
        };
        if is_intact {
            report.files += 1;
        } else {
            report.problems.push(format!("{name}: has another SHA-256 than its row"));
        }
    }
    while let Some((name, _)) = next_expected()? {
        report.problems.push(missing(&name));
    }
    Ok(report)
}
