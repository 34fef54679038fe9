//! `galley import` of a bundle: restores the workspace in another store.
//!
//! Resources whose id exists already stay as they are. So a restart continues an interrupted
//! restore, and a repeated restore changes nothing.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use galley_application::operations::asset_import::AssetDestination;
use galley_application::operations::audit::record_restoration;
use galley_application::operations::content_pieces::{self, RestoredPiece};
use galley_application::operations::import_sources::{self};
use galley_application::operations::restored_version;
use galley_application::operations::trash::contains_piece;
use galley_application::{Environment, Error, Scope};
use galley_domain::WorkspaceId;
use galley_storage::{Database, DatabaseUrl, Failure, ProcessRole, WriteTx};

use crate::bundle::files::{BundledPiece, piece, pieces};
use crate::bundle::trash;
use crate::bundle::workspace_manifest::{RestoreError, WorkspaceManifest};
use crate::bundle::{assets, audit};
use crate::cli::content::ImportArguments;
use crate::out::{counted, escape_for_terminal, say};
use crate::own_files::OwnFiles;
use crate::settings::Settings;
use crate::{progress, store};

/// The number of pieces in one transaction.
const BATCH: usize = 16;

pub(crate) async fn restore(
    settings: &Settings,
    arguments: &ImportArguments,
    folder: &Path,
) -> anyhow::Result<ExitCode> {
    check_arguments(arguments)?;
    let environment = Environment::default();
    let manifest = Arc::new(WorkspaceManifest::read(folder, restored_version(&environment))?);
    let (files, missing) = pieces(folder)?;
    let own = OwnFiles::of(Some(&settings.database()?));
    if let Some(file) = files.iter().find(|file| own.includes(file)) {
        bail!("{} belongs to the database that is restored into", file.display());
    }
    if arguments.dry_run {
        return check_manifest(settings, &environment, manifest, files.len(), &missing).await;
    }
    let database = store::open(settings, &environment, ProcessRole::Command).await?;
    let workspace = manifest.workspace.id;
    let (environment_of_write, own) = (environment.clone(), Arc::clone(&manifest));
    let pieces = files.len();
    let insert = async move |tx: &WriteTx<'_>| {
        own.insert(tx, &environment_of_write).await?;
        record_restoration(tx, &environment_of_write, &Scope::whole(workspace), pieces);
        Ok::<_, RestoreError>(())
    };
    database.write("bundle.manifest", insert).await.context("nothing was restored")?;
    let mut report = RestoreReport { problems: missing, ..RestoreReport::default() };
    let stored = settings.assets(&settings.public_url(settings.listen))?;
    let scope = Scope::whole(workspace);
    let stored = AssetDestination::new(database.clone(), environment.clone(), scope, stored);
    let restored = assets::restore(&stored, folder).await;
    let (assets, problems) = restored.map_err(|error| error.context(INTERRUPTED))?;
    report.assets = assets;
    report.problems.extend(problems);
    let bar = progress::bar("pieces", files.len() as u64);
    for some in files.chunks(BATCH) {
        let (mut read, mut names) = (Vec::new(), Vec::new());
        for path in some {
            match piece(folder, path) {
                Ok(one) => {
                    read.push(one);
                    names.push(path);
                }
                Err(problem) => report.problems.push(format!("{}{problem}", path.display())),
            }
        }
        let scope = Scope::whole(workspace);
        report.insert(&database, &environment, &scope, read, &names).await?;
        bar.inc(some.len() as u64);
    }
    bar.finish_and_clear();
    let trashed = trash::restore(&database, &Scope::whole(workspace), folder).await;
    let (trashed, problems) = trashed.map_err(|error| error.context(INTERRUPTED))?;
    report.trashed = trashed;
    report.problems.extend(problems);
    let (scope, now) = (Scope::whole(workspace), environment.now());
    let problems = audit::restore(&database, &scope, folder, now).await;
    report.problems.extend(problems.map_err(|error| error.context(INTERRUPTED))?);
    // The webhooks are written last, so that restored pieces don't trigger them.
    let (now, own) = (environment.now(), manifest);
    let insert = async move |tx: &WriteTx<'_>| own.insert_missing_webhooks(tx, now).await;
    let webhooks = database.write("bundle.webhooks", insert).await.map_err(interrupted)?;
    database.close().await;
    report.print(workspace, webhooks);
    Ok(exit_code(&report.problems))
}

/// Rejects arguments that don't apply to a bundle.
fn check_arguments(arguments: &ImportArguments) -> anyhow::Result<()> {
    if arguments.place.url.is_some() {
        bail!(
            "a bundle is restored with its ids, which is possible only in the database itself: \
             omit --url"
        );
    }
    let has_other = arguments.groups
        || arguments.no_drafts
        || arguments.no_publish
        || arguments.overwrite
        || arguments.report.is_some()
        || !arguments.asset_folders.is_empty()
        || arguments.fetch_assets
        || arguments.group.is_some()
        || arguments.place.workspace.is_some()
        || !arguments.variants.is_empty()
        || !arguments.tags.is_empty()
        || arguments.sources.len() > 1;
    if has_other {
        bail!("a bundle contains a whole workspace: name only its folder, without other flags");
    }
    Ok(())
}

/// Prints the problems and returns the exit code.
fn exit_code(problems: &[String]) -> ExitCode {
    for problem in problems {
        eprintln!("{}", escape_for_terminal(problem));
    }
    if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Checks if everything except the pieces can be written, and rolls back.
async fn check_manifest(
    settings: &Settings,
    environment: &Environment,
    manifest: Arc<WorkspaceManifest>,
    pieces: usize,
    missing: &[String],
) -> anyhow::Result<ExitCode> {
    let workspace = manifest.workspace.id;
    // A missing database counts as an empty one.
    if !matches!(settings.database()?, DatabaseUrl::Sqlite(path) if !path.exists()) {
        let database = store::open_existing(settings, environment).await?;
        let environment_of_write = environment.clone();
        let insert = async move |tx: &WriteTx<'_>| {
            manifest.insert(tx, &environment_of_write).await?;
            Err::<(), _>(RestoreError::DryRun)
        };
        let tried = database.write("bundle.manifest", insert).await;
        database.close().await;
        if let Err(error) = tried
            && !matches!(error, RestoreError::DryRun)
        {
            return Err(error).context("nothing would be restored");
        }
    }
    let pieces = counted(pieces as u64, "piece");
    say!("{workspace} is valid except its pieces, which were not checked: {pieces}");
    Ok(exit_code(missing))
}

#[derive(Debug, Default)]
struct RestoreReport {
    restored: usize,
    existing: usize,
    /// The pieces in the trash.
    trashed: usize,
    assets: u64,
    problems: Vec<String>,
}

impl RestoreReport {
    fn print(&self, workspace: WorkspaceId, webhooks: usize) {
        say!(
            "Restored {workspace}: {}, {} existed already, {} with problems",
            counted(self.restored as u64, "piece"),
            self.existing,
            self.problems.len()
        );
        if self.trashed > 0 {
            say!("{} restored into the trash.", counted(self.trashed as u64, "piece"));
        }
        if self.assets > 0 {
            say!("{} restored.", counted(self.assets, "asset"));
        }
        if webhooks > 0 {
            say!(
                "{} disabled, as the bundle contains no secrets: create each again with its \
                 secret, or enable it to send unsigned requests.",
                counted(webhooks as u64, "webhook")
            );
        }
        say!("To create a token: galley token create --workspace {workspace}");
    }

    /// Writes pieces in one transaction, or each in its own if one of them is rejected.
    async fn insert(
        &mut self,
        database: &Database,
        environment: &Environment,
        scope: &Scope,
        read: Vec<BundledPiece>,
        names: &[&PathBuf],
    ) -> anyhow::Result<()> {
        let read = Arc::new(read);
        let write = async |some: std::ops::Range<usize>| {
            let (read, environment, scope) =
                (Arc::clone(&read), environment.clone(), scope.clone());
            let write = async move |tx: &WriteTx<'_>| {
                let mut restored = 0;
                let groups = read[some.clone()].iter().map(|one| one.piece.content_group_id);
                content_pieces::lock_slugs(tx, &scope, &groups.collect::<Vec<_>>()).await?;
                for one in &read[some.clone()] {
                    if contains_piece(tx, &scope, one.piece.id).await? {
                        continue;
                    }
                    let restored_piece = RestoredPiece {
                        piece: &one.piece,
                        content: &one.content,
                        overrides: &one.overrides,
                        revisions: &one.revisions,
                    };
                    let is_new =
                        content_pieces::restore(tx, &environment, &scope, restored_piece).await?;
                    if is_new {
                        import_sources::save_in(tx, &scope, &one.sources).await?;
                        restored += 1;
                    }
                }
                Ok::<_, Error>(restored)
            };
            database.write("bundle.pieces", write).await
        };
        match write(0..read.len()).await {
            Ok(restored) => {
                self.restored += restored;
                self.existing += read.len() - restored;
                return Ok(());
            }
            Err(error) if error.storage_error().is_some() => return Err(interrupted(error)),
            Err(_) => {}
        }
        for (index, name) in names.iter().enumerate() {
            match write(index..index + 1).await {
                Ok(restored) => {
                    self.restored += restored;
                    self.existing += 1 - restored;
                }
                Err(error) if error.storage_error().is_some() => return Err(interrupted(error)),
                Err(error) => self.problems.push(format!("{}: {error}", name.display())),
            }
        }
        Ok(())
    }
}

/// The message about an import that can be continued.
const INTERRUPTED: &str = "the import stopped: run it again to continue";

fn interrupted(error: Error) -> anyhow::Error {
    anyhow::Error::new(error).context(INTERRUPTED)
}
