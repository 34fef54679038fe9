//! `galley import`: the command of the importer.

mod report;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use galley_application::operations::asset_import::AssetDestination;
use galley_application::{Environment, Scope};
use galley_domain::revision::Origin;
use galley_domain::tag::TagLabel;
use galley_import::{
    AssetImporter, DatabaseDestination, FoundSources, ImportOptions, ImportPlace, ImportProgress,
    ServerDestination,
};

use crate::cli::DEFAULT_GROUP;
use crate::cli::content::ImportArguments;
use crate::out::{counted, say};
use crate::own_files::OwnFiles;
use crate::settings::Settings;
use crate::{bundle, progress, store};

pub(crate) async fn run(
    settings: &Settings,
    arguments: &ImportArguments,
) -> anyhow::Result<ExitCode> {
    if let Some(bundle) = arguments.sources.iter().find(|source| bundle::is_bundle(source)) {
        return bundle::restore(settings, arguments, bundle).await;
    }
    let checked = galley_import::check_languages(&arguments.variants);
    checked.map_err(|problem| anyhow::anyhow!("--variants: {problem}"))?;
    let database = settings.database()?;
    let own = OwnFiles::of(arguments.place.url.is_none().then_some(&database));
    for folder in &arguments.asset_folders {
        anyhow::ensure!(folder.is_dir(), "--assets {} is not a folder", folder.display());
    }
    if let Some(path) = &arguments.report {
        // The check comes before anything is imported. Another process may have the database open,
        // so this process must keep its locks on it.
        anyhow::ensure!(!own.includes(path), "--report {} belongs to the database", path.display());
        let opened = std::fs::File::options().create(true).append(true).open(path);
        opened.with_context(|| format!("--report {}", path.display()))?;
    }
    let is_own = |path: &std::path::Path| own.includes(path);
    let found = galley_import::find(&arguments.sources, &arguments.variants, &is_own)?;
    let labels = arguments.tags.iter().map(|label| {
        TagLabel::parse(label.as_str()).map_err(|invalid| anyhow::anyhow!("--tag {invalid}"))
    });
    let labels: Vec<_> = labels.collect::<anyhow::Result<_>>()?;
    let wanted = arguments.group.as_deref().unwrap_or(DEFAULT_GROUP);
    let options_of = |group| ImportOptions {
        group,
        groups: arguments.groups,
        labels,
        languages: arguments.variants.clone(),
        no_drafts: arguments.no_drafts,
        no_publish: arguments.no_publish,
        overwrite: arguments.overwrite,
        dry_run: arguments.dry_run,
        lists_documents: false,
        assets: None,
    };
    match arguments.place.server()? {
        Some((url, token)) => {
            let place = ImportPlace::Server(ServerDestination::new(url, token)?);
            let mut options = options_of(place.find_group(wanted).await?);
            let assets = place.server_assets(options.group);
            if let Some(assets) = assets {
                options.assets = completed(assets, settings, arguments, own)?;
            }
            load(place, settings, arguments, options, found).await
        }
        None => {
            let environment = Environment::default();
            let database = store::open_existing(settings, &environment).await?;
            let workspace =
                store::workspace(&database, arguments.place.workspace.as_deref()).await?;
            let is_served = database.is_served().await?;
            let scope = Scope { origin: Origin::Import, ..Scope::whole(workspace) };
            let files = settings.assets(&settings.public_url(settings.listen))?;
            let files =
                AssetDestination::new(database.clone(), environment.clone(), scope.clone(), files);
            let place = DatabaseDestination::new(database.clone(), environment, scope, is_served);
            let place = ImportPlace::Database(Box::new(place));
            let mut options = options_of(place.find_group(wanted).await?);
            let assets = AssetImporter::into_database(files, options.group);
            // The log and its index exist since the database was opened.
            let own = OwnFiles::of(Some(&settings.database()?));
            options.assets = completed(assets, settings, arguments, own)?;
            let done = load(place, settings, arguments, options, found).await;
            database.close().await;
            done
        }
    }
}

/// Returns the importer with the options of the command; `None` if it brings no files along.
fn completed(
    assets: AssetImporter,
    settings: &Settings,
    arguments: &ImportArguments,
    own: OwnFiles,
) -> anyhow::Result<Option<Arc<AssetImporter>>> {
    if arguments.no_assets {
        return Ok(None);
    }
    let mut assets = assets
        .with_folders(arguments.asset_folders.clone())
        .without(Arc::new(move |path| own.includes(path)))
        .as_dry_run(arguments.dry_run);
    if arguments.fetch_assets {
        assets = assets.with_fetching(settings.fetch_addresses()?);
    }
    Ok(Some(Arc::new(assets)))
}

async fn load(
    place: ImportPlace,
    settings: &Settings,
    arguments: &ImportArguments,
    options: ImportOptions,
    found: FoundSources,
) -> anyhow::Result<ExitCode> {
    let bar = progress::bar("pieces", found.file_count() as u64);
    let assets = options.assets.clone();
    let on_progress = |step| {
        match step {
            ImportProgress::Found(more) => bar.inc_length(more),
            ImportProgress::Done(count) => bar.inc(count),
        }
        if let Some(assets) = &assets {
            bar.set_message(counted(assets.counts().stored, "new file"));
        }
    };
    let is_into_database = matches!(place, ImportPlace::Database(_));
    let imported = galley_import::run(place, options, found, on_progress).await;
    bar.finish_and_clear();
    let (mut report, done) = imported?;
    let status = report::print(&mut report, arguments.dry_run);
    if let Some(path) = &arguments.report {
        report::write(&report, path, arguments.dry_run)?;
    }
    done?;
    if is_into_database && report.assets.stored > 0 && settings.has_assumed_asset_base_url() {
        let url = settings.asset_base_url();
        say!("The addresses of the files begin with {url}: set public-url, or asset-base-url.");
    }
    Ok(status)
}
