//! `galley export`: writes a content group as Markdown files with front matter, the reverse of
//! `galley import`.
//!
//! The same content results in the same files, byte for byte, so that they can be kept in a
//! repository.

mod assets;
mod file;
pub(crate) mod folder;
mod names;
mod source;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use galley_application::Environment;
use galley_assets::FileName;
use galley_domain::asset::AssetFile;
use galley_domain::publication::ContentView;
use galley_storage::content_piece_list::{Sort, SortKey};

use crate::bundle;
use crate::cli::DEFAULT_GROUP;
use crate::cli::content::{ExportArguments, ExportFormat};
use crate::out::{counted, escape_for_terminal, say};
use crate::own_files::OwnFiles;
use crate::settings::{Settings, open_asset_store};
use crate::{progress, store};
use assets::ExportedAssets;
use folder::{ExportFolder, ExportKind};
use galley_import::group_path;
use names::FileNames;
use source::ExportSource;

/// Writes the files of assets.
async fn write_files(
    folder: &mut ExportFolder,
    settings: &Settings,
    files: &BTreeMap<String, (FileName, AssetFile)>,
) -> anyhow::Result<()> {
    let store = open_asset_store(&settings.asset_store()?)?;
    let bar = progress::bytes_bar(files.values().map(|(_, file)| file.bytes()).sum());
    for (name, (stored, file)) in files {
        folder.write_asset(name, &store, stored, file).await;
        bar.inc(file.bytes());
    }
    bar.finish_and_clear();
    Ok(())
}

/// Prints the numbers of exported pieces and of changed files. `keys` are those of the variants.
fn print_summary(
    folder: &Path,
    keys: &[String],
    (pieces, in_variants): (u64, u64),
    (written, removed): (usize, usize),
) {
    say!(
        "{} and {in_variants} in variants: {} written, {removed} removed",
        counted(pieces, "piece"),
        counted(written as u64, "file")
    );
    if in_variants > 0 {
        let folder = folder.display();
        say!(
            "To import them again: galley import {folder} --groups --variants OWN,{}",
            keys.join(",")
        );
    }
}

pub(crate) async fn run(
    settings: &Settings,
    arguments: &ExportArguments,
) -> anyhow::Result<ExitCode> {
    if arguments.format == ExportFormat::Json {
        return bundle::export(settings, arguments).await;
    }
    let environment = Environment::default();
    let database = store::open_existing(settings, &environment).await?;
    let workspace = store::workspace(&database, arguments.workspace.as_deref()).await?;
    let group = arguments.group.as_deref().unwrap_or(DEFAULT_GROUP);
    let group = group_path::find_in_database(&database, workspace, group).await?;
    let own = OwnFiles::of(Some(&settings.database()?));
    let mut folder = ExportFolder::open(&arguments.folder, ExportKind::Markdown, own)?;
    // One snapshot for the whole export, unaffected by concurrent writes.
    let snapshot = database.snapshot().await?;
    let source = ExportSource::read(&snapshot, workspace, group, arguments.view).await?;
    let bar = progress::bar("files", 0);
    let keys: Vec<_> = source.variants.iter().map(|one| one.key.as_str().to_owned()).collect();
    let mut names = FileNames::new(keys.clone());
    let (mut pieces, mut in_variants) = (0_u64, 0_u64);
    let mut after = None;
    let mut assets = ExportedAssets::new(workspace);
    loop {
        let own = source.page(&snapshot, after.clone(), None).await?;
        let Some((last, _)) = own.last() else { break };
        let next = Sort { key: SortKey::CreatedAt, descending: false }.position(last);
        bar.inc_length(own.len() as u64);
        assets.find(&snapshot, &own).await?;
        let mut stems = Vec::with_capacity(own.len());
        for (piece, content) in &own {
            let groups = source.folders(piece.content_group_id);
            let name = names.name(piece, &groups);
            let text = file::text(piece, None, content.as_deref(), &source, &assets, &name)?;
            folder.write(&name, &text);
            stems.push(name);
            pieces += 1;
            bar.inc(1);
        }
        for variant in &source.variants {
            let shown = source.page(&snapshot, after.clone(), Some(variant.id)).await?;
            assets.find(&snapshot, &shown).await?;
            for ((piece, content), (own, stem)) in shown.iter().zip(own.iter().zip(&stems)) {
                if (&piece.fields, content) == (&own.0.fields, &own.1) {
                    continue;
                }
                let key = variant.key.as_str();
                let name = names.in_variant(stem, key, piece);
                let content = content.as_deref();
                let text = file::text(piece, Some(key), content, &source, &assets, &name)?;
                folder.write(&name, &text);
                in_variants += 1;
            }
        }
        after = Some(next);
    }
    bar.finish_and_clear();
    drop(snapshot);
    let files = assets.into_files();
    if !files.is_empty() {
        write_files(&mut folder, settings, &files).await?;
    }
    database.close().await;
    let (written, removed, problems) = folder.finish()?;
    print_summary(&arguments.folder, &keys, (pieces, in_variants), (written, removed));
    if arguments.view == ContentView::Current && !source.marks_drafts && pieces > 0 {
        say!(
            "No piece of the workspace is published, so the files don't mark drafts. An import into \
             another store publishes them, unless --no-publish is given."
        );
    }
    for problem in &problems {
        eprintln!("{}", escape_for_terminal(problem));
    }
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
