//! `galley import`: imports Markdown, HTML, and exports of other systems as content pieces.
//!
//! A piece is identified by its source name: a file's path below the named folder, or a post's id,
//! stored as `filename`. So a second import updates changed pieces and creates no duplicates. Each
//! unreadable source is reported with its line; all others are imported.

mod autop;
mod database;
mod findings;
mod fingerprint;
mod front_matter;
mod ghost;
mod hash;
mod html;
mod load;
pub(crate) mod markdown;
mod place;
mod raw;
mod read;
mod report;
mod server;
mod sources;
mod wordpress;

use std::process::ExitCode;

use anyhow::Context;
use galley_domain::tag::TagLabel;
use indicatif::ProgressBar;

use crate::bundle;
use crate::cli::{GROUP, ImportArguments};
use crate::own_files::OwnFiles;
use crate::progress;
use crate::settings::Settings;
use database::InDatabase;
use findings::Finding;
use load::{Loader, Target};
use place::Place;
use raw::{Document, State};
use report::Report;
use server::OnServer;
use sources::SourceFile;

/// The limit of content that is read but not yet written, in bytes.
const WAITING_MAX: usize = 16 * 1024 * 1024;

pub(crate) async fn run(
    settings: &Settings,
    arguments: &ImportArguments,
) -> anyhow::Result<ExitCode> {
    if let Some(bundle) = arguments.sources.iter().find(|source| bundle::is_bundle(source)) {
        return bundle::restore(settings, arguments, bundle).await;
    }
    for (place, language) in arguments.variants.iter().enumerate() {
        if arguments.variants[..place].contains(language) {
            anyhow::bail!("--variants has {language} twice");
        }
        load::variant_key(language).map_err(|problem| anyhow::anyhow!("--variants: {problem}"))?;
    }
    let database = settings.database()?;
    let own = OwnFiles::of(arguments.url.is_none().then_some(&database));
    if let Some(path) = &arguments.report {
        // The check comes before anything is imported. Another process may have the database open,
        // so this process must keep its locks on it.
        anyhow::ensure!(!own.hold(path), "--report {} belongs to the database", path.display());
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
            let token = arguments.token.as_deref().context("--token is needed with --url")?;
            let place = OnServer::new(url, token)?;
            load(place, arguments, labels, found).await
        }
        None => {
            let place = InDatabase::open(settings, arguments.workspace.as_deref()).await?;
            load(place, arguments, labels, found).await
        }
    }
}

async fn load<P: Place>(
    place: P,
    arguments: &ImportArguments,
    labels: Vec<TagLabel>,
    found: sources::Found,
) -> anyhow::Result<ExitCode> {
    let target = Target {
        group: place.find_group(arguments.group.as_deref().unwrap_or(GROUP)).await?,
        drafts: arguments.drafts_group.clone(),
        labels,
        groups: arguments.groups,
        language: arguments.variants.first().cloned(),
        overwrite: arguments.overwrite,
    };
    let mut report = Report::new(found.problems);
    for (path, what) in found.left_behind {
        report.add(&path, Finding::left_out(what));
    }
    let mut import = Import {
        loader: Loader::new(place, target).await?,
        arguments,
        report,
        bar: progress::bar("pieces", found.files.len() as u64),
        waiting: Vec::new(),
        size: 0,
    };
    let done = import.run(found.files).await;
    import.bar.finish_and_clear();
    import.loader.close().await;
    let status = import.report.print(arguments.dry_run);
    if let Some(path) = &arguments.report {
        import.report.write(path, arguments.dry_run)?;
    }
    done.context("the import stopped, and goes on where it is started again")?;
    Ok(status)
}

/// An import under way.
struct Import<'a, P> {
    loader: Loader<P>,
    arguments: &'a ImportArguments,
    report: Report,
    bar: ProgressBar,
    /// The documents that are read but not yet written.
    waiting: Vec<Document>,
    /// The total content size of `waiting`, in bytes.
    size: usize,
}

impl<P: Place> Import<'_, P> {
    async fn run(&mut self, files: Vec<SourceFile>) -> anyhow::Result<()> {
        let mut outcomes = read::outcomes(files, P::FORM);
        while let Some(outcome) = outcomes.recv().await {
            self.take(outcome);
            if self.waiting.len() >= P::BATCH || self.size >= WAITING_MAX {
                self.keep().await?;
            }
        }
        self.keep().await
    }

    fn take(&mut self, outcome: read::Outcome) {
        match outcome {
            read::Outcome::Document(mut document, _) => {
                let (source, state) = (document.name.as_str().to_owned(), document.state);
                if state == State::Published || !self.arguments.no_drafts {
                    if state != State::Published {
                        let is_left = self.loader.has_published_piece(&document);
                        let left = if is_left { ", left among the published ones" } else { "" };
                        let what = format!("{}{left}", state.plural());
                        self.report.add(&source, Finding::set_apart(what));
                    }
                    for finding in std::mem::take(&mut document.findings) {
                        self.report.add(&source, finding);
                    }
                    self.size += document.content.len();
                    self.waiting.push(*document);
                    return;
                }
                self.report.add(&source, Finding::left_out(state.plural()));
            }
            read::Outcome::More(more) => {
                self.bar.inc_length(more);
                return;
            }
            read::Outcome::LeftOut(source, finding) => self.report.add(&source, finding),
            read::Outcome::Problem(problem) => self.report.add_problem(problem),
        }
        self.bar.inc(1);
    }

    async fn keep(&mut self) -> anyhow::Result<()> {
        let documents = std::mem::take(&mut self.waiting);
        self.size = 0;
        let count = documents.len() as u64;
        let outcomes = if self.arguments.dry_run {
            self.loader.compare(documents).await?
        } else {
            self.loader.load(documents).await?
        };
        for (place, outcome) in outcomes {
            self.report.count(&place, outcome);
        }
        self.bar.inc(count);
        Ok(())
    }
}
