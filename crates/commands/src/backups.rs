//! `galley copy`, `backup`, `restore` and `verify`: operations on a whole store.

use std::fmt::Write;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, bail};
use galley_application::Environment;
use galley_application::operations::asset_maintenance::AssetFiles;
use galley_assets::StoreLocation;
use galley_storage::{
    Database, DatabaseUrl, Options, ProcessRole, Snapshot, StagedFile, StagedStore, TableSummary,
    back_up, copy as copy_rows, reject_existing_file, restore as restore_file,
    verify as verify_file,
};

use crate::assets::{self, FileReport};
use crate::backup_archive::{self, ArchiveReport, is_archive};
use crate::cli::{BackupArguments, CopyArguments, FileArguments};
use crate::out::{counted, say};
use crate::settings::{Settings, open_asset_store};
use crate::version::VERSION;
use crate::{key, paths, progress, store};

/// Copies a store into an empty one.
pub(crate) async fn copy(
    settings: &Settings,
    arguments: &CopyArguments,
) -> anyhow::Result<ExitCode> {
    let environment = Environment::default();
    let (from, to) = (parse_url(&arguments.from)?, parse_url(&arguments.to)?);
    if from == to {
        bail!("--from and --to are the same store");
    }
    if let DatabaseUrl::Sqlite(path) = &from
        && !path.exists()
    {
        bail!("the database {} does not exist", path.display());
    }
    if let DatabaseUrl::Sqlite(path) = &from
        && path.metadata().is_ok_and(|file| file.len() == 0)
    {
        bail!("{} is empty: nothing was copied", path.display());
    }
    let alone = matches!(from, DatabaseUrl::Sqlite(_)) && !arguments.live;
    let role = if alone { ProcessRole::Server } else { ProcessRole::Command };
    let source = store::open_url(from.clone(), settings, &environment, role).await;
    let hint = "stop the server, so that the copy contains all writes, or copy the current state \
                with --live";
    let source = source
        .with_context(|| format!("--from can't be copied (if it is being served: {hint})"))?;
    if !alone && !arguments.live && source.is_served().await? {
        bail!("--from is being served: {hint}");
    }
    if let DatabaseUrl::Sqlite(path) = &to {
        store::make_data_dir(path.parent().unwrap_or(Path::new(".")))?;
    }
    let options = store::options(to.clone(), settings, &environment, ProcessRole::Command);
    let target = StagedStore::open(&options).await.with_context(|| format!("--to, {to:?}"))?;
    let started = Instant::now();
    let (bar, tell) = progress::for_store("rows copied and compared");
    let snapshot = source.snapshot().await?;
    let copied = copy_rows(&snapshot, &target, tell).await?;
    bar.finish_and_clear();
    // The files come first, so that each copied row has its file.
    let stores = AssetStores::of(settings, arguments, &from, &to)?;
    let files = stores.copy(&snapshot).await?;
    target.finish().await?;
    source.close().await;
    print(&copied);
    say!("Copied and compared row by row in {:.1} s.", started.elapsed().as_secs_f64());
    say!("{}", key::hint_for_copy(&from, &to));
    Ok(files.finish())
}

/// The stores of the files of a copied database.
struct AssetStores {
    from: StoreLocation,
    to: Option<StoreLocation>,
}

impl AssetStores {
    /// Returns the store of each side: beside a SQLite database, unless the settings name another.
    fn of(
        settings: &Settings,
        arguments: &CopyArguments,
        from: &DatabaseUrl,
        to: &DatabaseUrl,
    ) -> anyhow::Result<Self> {
        let beside = |url: &DatabaseUrl| match url {
            DatabaseUrl::Sqlite(path) if settings.has_default_asset_store() => {
                let folder = path.parent().unwrap_or(Path::new("."));
                Some(StoreLocation::Folder(folder.join(paths::ASSETS)))
            }
            _ => None,
        };
        let from = beside(from).map_or_else(|| settings.asset_store(), Ok)?;
        let to = match &arguments.assets_to {
            Some(place) => Some(settings.asset_store_at(place).context("--assets-to")?),
            None => beside(to),
        };
        Ok(Self { to: to.filter(|to| !to.is_same(&from)), from })
    }

    /// Copies the files, if the target has a store of its own.
    async fn copy(&self, source: &Snapshot) -> anyhow::Result<FileReport> {
        if AssetFiles::of_snapshot(source.clone()).next().await?.is_none() {
            return Ok(FileReport::default());
        }
        let Some(to) = &self.to else {
            say!("The files of assets stay in {}: set asset-store-url to it.", self.from);
            return Ok(FileReport::default());
        };
        if let StoreLocation::Folder(path) = &self.from
            && !path.is_dir()
        {
            bail!(
                "the store of the files of assets, {}, does not exist: name it with \
                 asset-store-url, or the folder above it with --data-dir",
                path.display()
            );
        }
        let (from, to) = (open_asset_store(&self.from)?, open_asset_store(to)?);
        assets::copy(source, &from, &to).await
    }
}

/// Creates a backup, also while a server is running.
pub(crate) async fn backup(
    settings: &Settings,
    arguments: &BackupArguments,
) -> anyhow::Result<ExitCode> {
    let environment = Environment::default();
    let file = &arguments.file;
    reject_existing_file(file).with_context(|| format!("{}", file.display()))?;
    let database = store::open_existing(settings, &environment).await?;
    let options =
        store::options(settings.database()?, settings, &environment, ProcessRole::Command);
    let with_assets = !arguments.without_assets;
    let report = write_backup(settings, &database, &options, file, with_assets).await;
    let report = report.with_context(|| format!("{}", file.display()))?;
    database.close().await;
    let size = std::fs::metadata(file)?.len();
    say!("{} contains all writes acknowledged before its start ({size} bytes).", file.display());
    if report.files > 0 {
        say!("It contains {} of assets.", counted(report.files, "file"));
    }
    say!("{}", key::hint_for_backup(settings)?);
    Ok(exit_code(&report.problems))
}

/// Writes a backup: an archive if the database has assets, and otherwise one of the database.
async fn write_backup(
    settings: &Settings,
    database: &Database,
    options: &Options,
    file: &Path,
    with_assets: bool,
) -> anyhow::Result<ArchiveReport> {
    let has_assets = with_assets && AssetFiles::of_database(database).next().await?.is_some();
    let mut archive = if has_assets { Some(UnfinishedArchive::create(file)?) } else { None };
    let rows = archive.as_ref().map_or(file, |archive| &archive.rows.0);
    let (bar, tell) = progress::for_store("done");
    back_up(database, options, rows, tell).await?;
    bar.finish_and_clear();
    if with_assets && archive.is_none() && backup_archive::names_files(file).await? {
        // The first upload has arrived meanwhile.
        let created = UnfinishedArchive::create(file)?;
        std::fs::rename(file, &created.rows.0)?;
        archive = Some(created);
    }
    let Some(UnfinishedArchive { staged, rows }) = archive else {
        return Ok(ArchiveReport::default());
    };
    let store = open_asset_store(&settings.asset_store()?)?;
    backup_archive::write(database, &store, &rows.0, staged).await
}

/// An archive that is being written, and the backup of the database for it.
struct UnfinishedArchive {
    /// The archive. Its lock also protects `rows`.
    staged: StagedFile,
    rows: TemporaryFile,
}

impl UnfinishedArchive {
    fn create(file: &Path) -> anyhow::Result<Self> {
        let staged = StagedFile::create(file)?;
        Ok(Self { staged, rows: TemporaryFile::beside(file, ".unfinished.database")? })
    }
}

/// Prints problems, and returns the exit code.
fn exit_code(problems: &[String]) -> ExitCode {
    for problem in problems {
        eprintln!("{problem}");
    }
    if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A file that is removed when this is dropped.
struct TemporaryFile(PathBuf);

impl TemporaryFile {
    /// Names a file beside another one. An earlier, interrupted command may have left it.
    fn beside(file: &Path, end: &str) -> std::io::Result<Self> {
        let mut path = file.as_os_str().to_owned();
        path.push(end);
        let path = PathBuf::from(path);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(Self(path)),
        }
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Restores a backup into an empty store.
pub(crate) async fn restore(
    settings: &Settings,
    arguments: &FileArguments,
) -> anyhow::Result<ExitCode> {
    let environment = Environment::default();
    let file = existing(&arguments.file)?;
    store::make_data_dir(&settings.data_dir)?;
    let options =
        store::options(settings.database()?, settings, &environment, ProcessRole::Command);
    let rows = rows_of(file, &settings.data_dir.join(paths::DATABASE)).await?;
    let rows_file = rows.as_ref().map_or(file, |rows| &rows.0);
    let mut report = ArchiveReport::default();
    if rows.is_some() {
        verify_file(rows_file, VERSION, |_| {}).await?;
        // The files come first, so that each restored row has its file.
        drop(StagedStore::open(&options).await?);
        let files = open_asset_store(&settings.asset_store()?)?;
        report = backup_archive::read_files(file, rows_file, Some(files)).await?;
    }
    let (bar, tell) = progress::for_store("done");
    restore_file(rows_file, &options, tell).await.with_context(|| format!("{}", file.display()))?;
    bar.finish_and_clear();
    let database = Database::open(options).await?;
    let key = key::check(settings, &database).await;
    let has_assets = AssetFiles::of_database(&database).next().await?.is_some();
    database.close().await;
    say!("Restored into {:?}.", settings.database()?);
    if rows.is_some() {
        say!("{} restored into {}.", counted(report.files, "file"), settings.asset_store()?);
    } else if has_assets {
        say!(
            "The backup has no files of assets: {} must have them. `galley assets check` compares \
             them.",
            settings.asset_store()?
        );
    }
    match key {
        Ok(_) => say!("Start it with `galley serve`."),
        Err(problem) => say!("Fix the problem of its key before you start it: {problem}"),
    }
    Ok(exit_code(&report.problems))
}

/// Extracts the database of an archive into a temporary file beside `place`.
async fn rows_of(file: &Path, place: &Path) -> anyhow::Result<Option<TemporaryFile>> {
    if !is_archive(file)? {
        return Ok(None);
    }
    let rows = TemporaryFile::beside(place, ".unfinished.extracted")?;
    backup_archive::extract_database(file, &rows.0).await?;
    Ok(Some(rows))
}

/// Checks a backup's integrity, and lists its contents.
pub(crate) async fn verify(arguments: &FileArguments) -> anyhow::Result<ExitCode> {
    let file = existing(&arguments.file)?;
    let folder = tempfile::tempdir().context("the directory for temporary files (TMPDIR)")?;
    let rows = rows_of(file, &folder.path().join(paths::DATABASE)).await?;
    let rows_file = rows.as_ref().map_or(file, |rows| &rows.0);
    let (bar, tell) = progress::for_store("rows");
    let found = verify_file(rows_file, VERSION, tell).await;
    let found = found.with_context(|| format!("{} can't be restored", file.display()))?;
    bar.finish_and_clear();
    print(&found.tables);
    let mut report = ArchiveReport::default();
    if rows.is_some() {
        report = backup_archive::read_files(file, rows_file, None).await?;
        say!("{:>10}  files of assets", report.files);
    }
    let older = if found.is_older { " (a restore migrates it)" } else { "" };
    let state = if report.problems.is_empty() { "intact" } else { "damaged" };
    say!("{} is {state}. Its schema version is {}{older}.", file.display(), found.schema);
    if !found.has_checksum {
        say!("It has no checksum, as a copy by another program: changed texts are not detected.");
    }
    Ok(exit_code(&report.problems))
}

fn existing(file: &Path) -> anyhow::Result<&Path> {
    let found = std::fs::metadata(file).with_context(|| format!("{}", file.display()))?;
    if !found.is_file() {
        bail!("{} is not a file", file.display());
    }
    if !is_backup(file)? {
        bail!("{} is not a backup of galley", file.display());
    }
    Ok(file)
}

/// Returns true if a file begins as a backup does: as an archive, or as a SQLite database.
pub(crate) fn is_backup(file: &Path) -> std::io::Result<bool> {
    let mut start = Vec::new();
    File::open(file)?.take(16).read_to_end(&mut start)?;
    Ok(start == b"SQLite format 3\0" || is_archive(file)?)
}

/// Parses `postgres://…`, `sqlite:PATH` or a path. The path is that of a database file, or of a
/// server's data directory.
fn parse_url(text: &str) -> anyhow::Result<DatabaseUrl> {
    if text.starts_with("postgres://") || text.starts_with("postgresql://") {
        return Ok(DatabaseUrl::Postgres(text.to_owned()));
    }
    let path = text.strip_prefix("sqlite:").unwrap_or(text);
    let path = path.strip_prefix("//").unwrap_or(path);
    if path.is_empty() || path.contains("://") {
        // The text may contain a password, so the message omits it.
        bail!("--from and --to must be postgres://… or sqlite:PATH");
    }
    let path = PathBuf::from(path);
    let is_file = path.is_file() || path.extension().is_some_and(|kind| kind == "db");
    Ok(DatabaseUrl::Sqlite(if is_file { path } else { path.join(paths::DATABASE) }))
}

fn print(tables: &[TableSummary]) {
    let (filled, empty): (Vec<_>, Vec<_>) = tables.iter().partition(|table| table.rows > 0);
    for TableSummary { name, rows, sha256 } in filled {
        let sum = sha256.iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("a String takes everything");
            text
        });
        say!("{rows:>10}  {name:<32} {sum}");
    }
    let rows: u64 = tables.iter().map(|table| table.rows).sum();
    say!("{rows:>10}  rows; {} tables are empty", empty.len());
}
