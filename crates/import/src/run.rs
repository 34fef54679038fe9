//! An import from the first source to the report.

use std::collections::HashSet;
use std::sync::Arc;

use anyhow::Context;
use galley_application::Environment;
use galley_domain::ContentGroupId;
use galley_domain::tag::TagLabel;

use crate::assets::AssetImporter;
use crate::database::DatabaseDestination;
use crate::decision::ImportTarget;
use crate::destination::Destination;
use crate::findings::ImportFinding;
use crate::load::Loader;
use crate::raw::{Document, PublishingState};
use crate::report::Report;
use crate::server::ServerDestination;
use crate::sources::{FoundSources, SkippedFile, SourceFile};
use crate::{language, read};

/// The limit of content that is read but not yet written, in bytes.
const PENDING_CONTENT_LIMIT: usize = 16 * 1024 * 1024;

/// The choices of an import.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command")]
pub struct ImportOptions {
    /// The group of the new pieces.
    pub group: ContentGroupId,
    /// True if folders become groups.
    pub groups: bool,
    /// The tags of every piece.
    pub labels: Vec<TagLabel>,
    /// The languages. The first is that of the pieces, and the others are variants.
    pub languages: Vec<String>,
    /// True if drafts and other unpublished sources are omitted.
    pub no_drafts: bool,
    /// True if no publication is changed.
    pub no_publish: bool,
    /// True if pieces are updated even if they were edited since the last import.
    pub overwrite: bool,
    /// True if everything is read and compared, and nothing is written.
    pub dry_run: bool,
    /// True if the report lists each document.
    pub lists_documents: bool,
    /// The importer of files; `None` if their addresses stay as they are.
    pub assets: Option<Arc<AssetImporter>>,
}

/// The destination of an import.
#[derive(Debug)]
pub enum ImportPlace {
    /// A database.
    Database(Box<DatabaseDestination>),
    /// A server in front of one.
    Server(ServerDestination),
}

impl ImportPlace {
    /// Returns the importer of files into a server; `None` for a database, whose store the caller
    /// names.
    pub fn server_assets(&self, group: ContentGroupId) -> Option<AssetImporter> {
        match self {
            Self::Database(_) => None,
            Self::Server(place) => Some(place.assets(group)),
        }
    }

    /// Finds a content group by its id or path.
    pub async fn find_group(&self, wanted: &str) -> anyhow::Result<ContentGroupId> {
        match self {
            Self::Database(place) => place.find_group(wanted).await,
            Self::Server(place) => place.find_group(wanted).await,
        }
    }
}

/// The progress of an import, in sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportProgress {
    /// An export has this many more sources.
    Found(u64),
    /// This many sources are done.
    Done(u64),
}

/// Rejects languages that can't be variants, and duplicates.
pub fn check_languages(languages: &[String]) -> Result<(), String> {
    let mut seen = HashSet::new();
    for one in languages {
        let key = language::variant_key(one)?;
        if !seen.insert(language::language_form(&key)) {
            return Err(format!("{one} is named twice"));
        }
    }
    Ok(())
}

/// Imports the sources. Returns the report, also of an import that stopped, and the reason of the
/// stop.
pub async fn run(
    place: ImportPlace,
    options: ImportOptions,
    found: FoundSources,
    on_progress: impl Fn(ImportProgress) + Send + Sync,
) -> anyhow::Result<(Report, anyhow::Result<()>)> {
    match place {
        ImportPlace::Database(place) => {
            Box::pin(import_into(*place, options, found, on_progress)).await
        }
        ImportPlace::Server(place) => {
            Box::pin(import_into(place, options, found, on_progress)).await
        }
    }
}

pub(crate) async fn import_into<P: Destination>(
    place: P,
    options: ImportOptions,
    found: FoundSources,
    on_progress: impl Fn(ImportProgress) + Send + Sync,
) -> anyhow::Result<(Report, anyhow::Result<()>)> {
    let target = ImportTarget {
        group: options.group,
        labels: options.labels,
        groups: options.groups,
        language: options.languages.first().cloned(),
        overwrite: options.overwrite,
        publish: !options.no_publish,
    };
    let report = Report::new(found.problems, options.lists_documents);
    let mut import = Import {
        loader: Loader::new(place, target).await?,
        own_language: options.languages.into_iter().next(),
        no_drafts: options.no_drafts,
        dry_run: options.dry_run,
        report,
        on_progress,
        assets: options.assets.clone(),
        pending: Vec::new(),
        size: 0,
    };
    let done = import.run(found.files).await;
    let brought = options.assets.as_ref().map(|assets| assets.brought_files()).unwrap_or_default();
    for SkippedFile { name, kind, path } in found.skipped {
        let path = path.and_then(|path| path.canonicalize().ok());
        if !path.is_some_and(|path| brought.contains(&path)) {
            import.report.add(&name, ImportFinding::left_out(kind));
        }
    }
    if let Some(assets) = options.assets {
        import.report.assets = assets.counts();
        import.report.referred_files = assets.referred_names();
    }
    Ok((import.report, done.context("the import stopped: run it again to continue")))
}

/// An import under way.
struct Import<P, F> {
    loader: Loader<P>,
    /// The language of the pieces themselves.
    own_language: Option<String>,
    no_drafts: bool,
    dry_run: bool,
    report: Report,
    on_progress: F,
    assets: Option<Arc<AssetImporter>>,
    /// The documents that are read but not yet written.
    pending: Vec<Document>,
    /// The total content size of `pending`, in bytes.
    size: usize,
}

impl<P: Destination, F: Fn(ImportProgress) + Send + Sync> Import<P, F> {
    async fn run(&mut self, files: Vec<SourceFile>) -> anyhow::Result<()> {
        let now = Environment::default().now();
        let mut outcomes = read::outcomes(files, P::FORM, now, self.assets.clone());
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
                let is_variant =
                    document.language.is_some() && document.language != self.own_language;
                if is_variant && state != PublishingState::Published {
                    // A publication of the piece would include it.
                    let what = format!("{} in other languages", state.plural());
                    self.report.add(&source, ImportFinding::left_out(what));
                } else if state == PublishingState::Published || !self.no_drafts {
                    if state != PublishingState::Published {
                        self.report.add(&source, ImportFinding::unpublished(state.plural()));
                    }
                    for finding in std::mem::take(&mut document.findings) {
                        self.report.add(&source, finding);
                    }
                    self.size += document.content.len();
                    self.pending.push(*document);
                    return;
                } else {
                    self.report.add(&source, ImportFinding::left_out(state.plural()));
                }
            }
            read::ParsedSource::More(more) => {
                (self.on_progress)(ImportProgress::Found(more));
                return;
            }
            read::ParsedSource::LeftOut(source, finding) => self.report.add(&source, finding),
            read::ParsedSource::Problem(problem) => self.report.add_problem(problem),
        }
        (self.on_progress)(ImportProgress::Done(1));
    }

    async fn write_pending(&mut self) -> anyhow::Result<()> {
        let documents = std::mem::take(&mut self.pending);
        self.size = 0;
        let count = documents.len() as u64;
        let results = if self.dry_run {
            self.loader.compare(documents).await?
        } else {
            self.loader.load(documents).await?
        };
        for result in results {
            self.report.count(result);
        }
        (self.on_progress)(ImportProgress::Done(count));
        Ok(())
    }
}
