//! `galley import`: the command of the importer.

mod report;

use std::process::ExitCode;

use anyhow::Context;
use galley_application::{Environment, Scope};
use galley_domain::revision::Origin;
use galley_domain::tag::TagLabel;
use galley_import::{
    DatabaseDestination, FoundSources, ImportOptions, ImportPlace, ImportProgress,
    ServerDestination,
};

use crate::cli::{DEFAULT_GROUP, ImportArguments};
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
    let own = OwnFiles::of(arguments.url.is_none().then_some(&database));
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
    };
    match &arguments.url {
        Some(url) => {
            let token = arguments.token.as_deref().context("--url requires --token")?;
            let place = ImportPlace::Server(ServerDestination::new(url, token)?);
            let options = options_of(place.find_group(wanted).await?);
            load(place, arguments, options, found).await
        }
        None => {
            let environment = Environment::default();
            let database = store::open_existing(settings, &environment).await?;
            let workspace = store::workspace(&database, arguments.workspace.as_deref()).await?;
            let is_served = database.is_served().await?;
            let scope = Scope { origin: Origin::Import, ..Scope::whole(workspace) };
            let place = DatabaseDestination::new(database.clone(), environment, scope, is_served);
            let place = ImportPlace::Database(place);
            let options = options_of(place.find_group(wanted).await?);
            let done = load(place, arguments, options, found).await;
            database.close().await;
            done
        }
    }
}

async fn load(
    place: ImportPlace,
    arguments: &ImportArguments,
    options: ImportOptions,
    found: FoundSources,
) -> anyhow::Result<ExitCode> {
    let bar = progress::bar("pieces", found.file_count() as u64);
    let on_progress = |step| match step {
        ImportProgress::Found(more) => bar.inc_length(more),
        ImportProgress::Done(count) => bar.inc(count),
    };
    let imported = galley_import::run(place, options, found, on_progress).await;
    bar.finish_and_clear();
    let (mut report, done) = imported?;
    let status = report::print(&mut report, arguments.dry_run);
    if let Some(path) = &arguments.report {
        report::write(&report, path, arguments.dry_run)?;
    }
    done?;
    Ok(status)
}
