//! `galley assets list|check|prune|copy`

use std::process::ExitCode;

use anyhow::bail;
use galley_application::Environment;
use galley_application::operations::asset_maintenance::{
    self as maintenance, AssetFiles, AssetList, FileDefect,
};
use galley_application::operations::assets::AssetFilter;
use galley_assets::AssetStore;
use galley_domain::asset::{Asset, AssetFile};
use galley_domain::{Timestamp, WorkspaceId};
use galley_storage::{Database, Snapshot};
use indicatif::HumanBytes;

use crate::cli::content::AssetsCommand;
use crate::out::{counted, escape_for_terminal, say};
use crate::settings::{Settings, open_asset_store};
use crate::{progress, store};

const MS_PER_DAY: i64 = 24 * 60 * 60 * 1_000;

pub(crate) async fn run(settings: &Settings, command: &AssetsCommand) -> anyhow::Result<ExitCode> {
    let environment = Environment::default();
    let database = store::open_existing(settings, &environment).await?;
    let done = run_on(settings, &database, &environment, command).await;
    database.close().await;
    done
}

async fn run_on(
    settings: &Settings,
    database: &Database,
    environment: &Environment,
    command: &AssetsCommand,
) -> anyhow::Result<ExitCode> {
    match command {
        AssetsCommand::List { unused, r#type, workspace } => {
            let workspace = store::workspace(database, workspace.as_deref()).await?;
            let filter = AssetFilter {
                media_type: r#type.clone(),
                is_used: unused.then_some(false),
                ..AssetFilter::default()
            };
            list(database, workspace, filter).await?;
            Ok(ExitCode::SUCCESS)
        }
        AssetsCommand::Check { hashes, remove_orphans } => {
            let files = open_asset_store(&settings.asset_store()?)?;
            let before = Timestamp::from_ms(environment.now().ms() - MS_PER_DAY);
            check(database, &files, *hashes, remove_orphans.then_some(before)).await
        }
        AssetsCommand::Prune { older_than, dry_run, workspace } => {
            let workspace = store::workspace(database, workspace.as_deref()).await?;
            let age = i64::from(*older_than) * MS_PER_DAY;
            let before = Timestamp::from_ms(environment.now().ms() - age);
            let files = open_asset_store(&settings.asset_store()?)?;
            let base_url = settings.asset_base_url();
            let pruning = Pruning { database, files, environment, workspace, base_url };
            pruning.run(before, *dry_run).await?;
            Ok(ExitCode::SUCCESS)
        }
        AssetsCommand::Copy { to } => {
            let (from, to) = (settings.asset_store()?, settings.asset_store_at(to)?);
            let (files, target) = (open_asset_store(&from)?, open_asset_store(&to)?);
            if from.is_same(&to) {
                bail!("--to is the store of the settings itself: {to}");
            }
            let copied = copy(&database.snapshot().await?, &files, &target).await?;
            if copied.is_success() {
                say!("Set asset-store-url to {to} and restart the server.");
                say!("Then copy once more, for uploads that have arrived meanwhile.");
            }
            Ok(copied.finish())
        }
    }
}

async fn list(
    database: &Database,
    workspace: WorkspaceId,
    filter: AssetFilter,
) -> anyhow::Result<()> {
    let mut list = AssetList::new(database, workspace, filter);
    while let Some(asset) = list.next().await? {
        say!("{}", line(&asset));
    }
    Ok(())
}

fn line(asset: &Asset) -> String {
    let name = escape_for_terminal(asset.filename.as_str());
    format!("{}  {:>12}  {}  {name}", asset.id, asset.file.size, asset.file.media_type)
}

/// The result of work on all files.
#[derive(Debug, Default)]
pub(crate) struct FileReport {
    files: u64,
    bytes: u64,
    problems: Vec<String>,
}

impl FileReport {
    fn add(&mut self, file: &AssetFile) {
        self.files += 1;
        self.bytes += file.bytes();
    }

    pub(crate) fn is_success(&self) -> bool {
        self.problems.is_empty()
    }

    /// Returns the number of files, and their size.
    pub(crate) fn shown(&self) -> String {
        format!("{} with {}", counted(self.files, "file"), HumanBytes(self.bytes))
    }

    /// Prints the problems, and returns the exit code.
    pub(crate) fn finish(&self) -> ExitCode {
        for problem in &self.problems {
            eprintln!("{}", escape_for_terminal(problem));
        }
        if self.is_success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

async fn check(
    database: &Database,
    files: &AssetStore,
    with_hashes: bool,
    orphans_before: Option<Timestamp>,
) -> anyhow::Result<ExitCode> {
    let bar = progress::bytes_bar(AssetFiles::of_database(database).bytes().await?);
    let (mut report, mut rows) = (FileReport::default(), AssetFiles::of_database(database));
    while let Some((name, file)) = rows.next().await? {
        let problem = match maintenance::check_file(files, &name, &file, with_hashes).await? {
            None => None,
            Some(FileDefect::Missing) => Some("is missing in the store".to_owned()),
            Some(FileDefect::Size(size)) => {
                Some(format!("has {size} bytes in the store instead of {}", file.size))
            }
            Some(FileDefect::Hash) => Some("has another SHA-256 in the store".to_owned()),
        };
        report.add(&file);
        report.problems.extend(problem.map(|problem| format!("{name}: {problem}")));
        bar.inc(file.bytes());
    }
    let now = Timestamp::from_ms(i64::MAX);
    let unknown =
        maintenance::unknown_files(database, files, orphans_before.unwrap_or(now)).await?;
    bar.finish_and_clear();
    say!("{} belong to assets; {} with problems.", report.shown(), report.problems.len());
    if unknown.foreign > 0 {
        say!("{} belong to no workspace of this database.", counted(unknown.foreign, "file"));
    }
    for name in &unknown.orphans {
        if orphans_before.is_some() {
            files.delete(name).await?;
        }
        say!("{name}: no asset has this file{}", removed(orphans_before.is_some()));
    }
    if orphans_before.is_none() && !unknown.orphans.is_empty() {
        say!("Uploads in progress are among them, perhaps. --remove-orphans removes older ones.");
    }
    Ok(report.finish())
}

fn removed(is_removed: bool) -> &'static str {
    if is_removed { ": removed" } else { "" }
}

/// Copies all files of a snapshot that the target does not have yet.
pub(crate) async fn copy(
    snapshot: &Snapshot,
    from: &AssetStore,
    to: &AssetStore,
) -> anyhow::Result<FileReport> {
    let bar = progress::bytes_bar(AssetFiles::of_snapshot(snapshot.clone()).bytes().await?);
    let mut files = AssetFiles::of_snapshot(snapshot.clone());
    let (mut report, mut existing) = (FileReport::default(), 0_u64);
    while let Some((name, file)) = files.next().await? {
        bar.inc(file.bytes());
        if maintenance::check_file(to, &name, &file, false).await?.is_none() {
            existing += 1;
            continue;
        }
        let problem = match maintenance::check_file(from, &name, &file, false).await? {
            Some(FileDefect::Missing) => Some("is missing in the store"),
            Some(_) => Some("has another size in the store, and was not copied"),
            None if maintenance::copy_file(from, &name, &file, to.writer(&name)).await? => None,
            None => Some("has another SHA-256 than its row, and was not copied"),
        };
        match problem {
            Some(problem) => report.problems.push(format!("{name}: {problem}")),
            None => report.add(&file),
        }
    }
    bar.finish_and_clear();
    say!("Copied {}; {existing} existed already.", report.shown());
    Ok(report)
}

struct Pruning<'d> {
    database: &'d Database,
    files: AssetStore,
    environment: &'d Environment,
    workspace: WorkspaceId,
    base_url: String,
}

impl Pruning<'_> {
    /// Deletes the unused assets that were created before a time.
    async fn run(&self, before: Timestamp, is_dry_run: bool) -> anyhow::Result<()> {
        let mut report = FileReport::default();
        let filter = AssetFilter { is_used: Some(false), ..AssetFilter::default() };
        let mut unused = AssetList::new(self.database, self.workspace, filter);
        // Assets are listed by creation.
        while let Some(asset) = unused.next().await?
            && asset.created_at < before
        {
            if is_dry_run || self.delete(&asset).await? {
                report.add(&asset.file);
                say!("{}", line(&asset));
            }
        }
        let assets = counted(report.files, "unused asset");
        let size = HumanBytes(report.bytes);
        let verb = if is_dry_run { "would be deleted" } else { "deleted" };
        eprintln!("{assets} with {size} {verb}.");
        Ok(())
    }

    async fn delete(&self, asset: &Asset) -> anyhow::Result<bool> {
        let Self { database, files, environment, workspace, base_url } = self;
        let (workspace, files) = (*workspace, files);
        let deleted =
            maintenance::delete_unused(database, files, environment, workspace, asset, base_url);
        Ok(deleted.await?)
    }
}
