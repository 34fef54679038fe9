//! `galley import`: imports Markdown, HTML, and exports of other systems as content pieces.
//!
//! A piece is identified by its source name: a file's path below the named folder, or a post's id,
//! stored as `filename`. So a second import updates changed pieces and creates no duplicates. Each
//! unreadable source is reported with its line; all others are imported.

mod autop;
mod database;
mod decision;
mod destination;
mod findings;
mod fingerprint;
mod front_matter;
mod ghost;
mod hash;
mod html;
mod language;
mod line_counting;
mod load;
pub(crate) mod markdown;
mod publication;
mod raw;
mod read;
mod report;
mod server;
mod sources;
mod wordpress;

use std::collections::HashSet;
use std::process::ExitCode;

use anyhow::Context;
use galley_application::Environment;
use galley_domain::tag::TagLabel;
use indicatif::ProgressBar;

use crate::bundle;
use crate::cli::{DEFAULT_GROUP, ImportArguments};
use crate::own_files::OwnFiles;
use crate::progress;
use crate::settings::Settings;
use database::DatabaseDestination;
use decision::ImportTarget;
use destination::Destination;
use findings::Finding;
use load::Loader;
use raw::{Document, PublishingState};
use report::Report;
use server::ServerDestination;
use sources::SourceFile;

/// The limit of content that is read but not yet written, in bytes.
const PENDING_CONTENT_LIMIT: usize = 16 * 1024 * 1024;

pub(crate) async fn run(
    settings: &Settings,
    arguments: &ImportArguments,
) -> anyhow::Result<ExitCode> {
    if let Some(bundle) = arguments.sources.iter().find(|source| bundle::is_bundle(source)) {
        return bundle::restore(settings, arguments, bundle).await;
    }
    let mut languages = HashSet::new();
    for language in &arguments.variants {
        let key = language::variant_key(language);
        let key = key.map_err(|problem| anyhow::anyhow!("--variants: {problem}"))?;
        if !languages.insert(language::language_form(&key)) {
            anyhow::bail!("--variants has {language} twice");
        }
    }
    let database = settings.database()?;
    let own = OwnFiles::of(arguments.url.is_none().then_some(&database));
    if let Some(path) = &arguments.report {
        // The check comes before anything is imported. Another process may have the database open,
        // so this process must keep its locks on it.
        anyhow::ensure!(!own.includes(path), "--report {} belongs to the database", path.display());
        let opened = std::fs::File::options().create(true).append(true).open(path);
        opened.with_context(|| format!("--report {}", path.display()))?;
    }
    let found = sources::find(&arguments.sources, &arguments.variants, &own)?;
    let labels = arguments.tags.iter().map(|label| {
        TagLabel::parse(label.as_str()).map_err(|invalid| anyhow::anyhow!("--tag {invalid}"))
    });
    let labels = labels.collect::<anyhow::Result<_>>()?;
    match &arguments.url {
        Some(url) => {
            let token = arguments.token.as_deref().context("--url requires --token")?;
            let place = ServerDestination::new(url, token)?;
            Box::pin(load(place, arguments, labels, found)).await
        }
        None => {
            let place = DatabaseDestination::open(settings, arguments.workspace.as_deref()).await?;
            Box::pin(load(place, arguments, labels, found)).await
        }
    }
}

async fn load<P: Destination>(
    place: P,
    arguments: &ImportArguments,
    labels: Vec<TagLabel>,
    found: sources::FoundSources,
) -> anyhow::Result<ExitCode> {
    let target = ImportTarget {
        group: place.find_group(arguments.group.as_deref().unwrap_or(DEFAULT_GROUP)).await?,
        labels,
        groups: arguments.groups,
        language: arguments.variants.first().cloned(),
        overwrite: arguments.overwrite,
        publish: !arguments.no_publish,
    };
    let mut report = Report::new(found.problems);
    for (path, what) in found.skipped {
        report.add(&path, Finding::left_out(what));
    }
    let mut import = Import {
        loader: Loader::new(place, target).await?,
        arguments,
        report,
        bar: progress::bar("pieces", found.files.len() as u64),
        pending: Vec::new(),
        size: 0,
    };
    let done = import.run(found.files).await;
    import.bar.finish_and_clear();
    import.loader.close().await;
    let status = import.report.print(arguments.dry_run);
    if let Some(path) = &arguments.report {
        import.report.write(path, arguments.dry_run)?;
    }
    done.context("the import stopped: run it again to continue")?;
    Ok(status)
}

/// An import under way.
struct Import<'a, P> {
    loader: Loader<P>,
    arguments: &'a ImportArguments,
    report: Report,
    bar: ProgressBar,
    /// The documents that are read but not yet written.
    pending: Vec<Document>,
    /// The total content size of `waiting`, in bytes.
    size: usize,
}

impl<P: Destination> Import<'_, P> {
    async fn run(&mut self, files: Vec<SourceFile>) -> anyhow::Result<()> {
        let mut outcomes = read::outcomes(files, P::FORM, Environment::default().now());
        while let Some(outcome) = outcomes.recv().await {
            self.take(outcome);
            if self.pending.len() >= P::BATCH || self.size >= PENDING_CONTENT_LIMIT {
                self.write_pending().await?;
            }
        }
        self.write_pending().await
    }

    fn take(&mut self, outcome: read::ParsedSource) {
        match outcome {
            read::ParsedSource::Document(mut document, _) => {
                let (source, state) = (document.name.as_str().to_owned(), document.state);
                let own = self.arguments.variants.first();
                let is_variant = document.language.is_some() && document.language.as_ref() != own;
                if is_variant && state != PublishingState::Published {
                    // A publication of the piece would include it.
                    let what = format!("{} in other languages", state.plural());
                    self.report.add(&source, Finding::left_out(what));
                } else if state == PublishingState::Published || !self.arguments.no_drafts {
                    if state != PublishingState::Published {
                        self.report.add(&source, Finding::unpublished(state.plural()));
                    }
                    for finding in std::mem::take(&mut document.findings) {
                        self.report.add(&source, finding);
                    }
                    self.size += document.content.len();
                    self.pending.push(*document);
                    return;
                } else {
                    self.report.add(&source, Finding::left_out(state.plural()));
                }
            }
            read::ParsedSource::More(more) => {
                self.bar.inc_length(more);
                return;
            }
            read::ParsedSource::LeftOut(source, finding) => self.report.add(&source, finding),
            read::ParsedSource::Problem(problem) => self.report.add_problem(problem),
        }
        self.bar.inc(1);
    }

    async fn write_pending(&mut self) -> anyhow::Result<()> {
        let documents = std::mem::take(&mut self.pending);
        self.size = 0;
        let count = documents.len() as u64;
        let results = if self.arguments.dry_run {
            self.loader.compare(documents).await?
        } else {
            self.loader.load(documents).await?
        };
        for result in results {
            self.report.count(result);
        }
        self.bar.inc(count);
        Ok(())
    }
}
