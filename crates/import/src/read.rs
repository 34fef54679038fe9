//! Reads files and converts them to documents, on threads of their own and several at a time.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use galley_domain::Timestamp;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::assets::{AssetImporter, SourceLocation};
use crate::findings::ImportFinding;
use crate::raw::{ContentForm, Document, RawPiece};
use crate::sources::{SourceContent, SourceFile, SourceFormat};
use crate::{front_matter, ghost, html, markdown, wordpress};

/// The size limit of a file with one piece.
const FILE_SIZE_LIMIT: u64 = 8 * 1024 * 1024;

/// The number of found pieces that may wait for parsing.
const FOUND_QUEUE_LIMIT: usize = 32;

/// The number of parsed pieces that may wait for writing, and the limit of their content, in bytes.
const PARSED_QUEUE_LIMIT: usize = 64;
const CONTENT_BUDGET: usize = 8 * 1024 * 1024;

/// The number of pieces that are parsed concurrently.
const PARSE_CONCURRENCY: usize = 4;

/// A source to parse, or a result of the search.
enum SourceUnit {
    File(SourceFile),
    /// A post of an export, and the export's path and location.
    Post(String, SourceLocation, Box<RawPiece>),
    /// A finding about an export, and the export's path.
    LeftOut(String, ImportFinding),
    Problem(String),
    /// The number of sources to come beyond the number of files.
    More(u64),
}

/// Reads the files on a thread, and sends their units in order.
fn units(files: Vec<SourceFile>) -> Receiver<SourceUnit> {
    let (send, units) = channel(FOUND_QUEUE_LIMIT);
    std::thread::spawn(move || {
        for file in files {
            let place = file.place.clone();
            let at = |line: usize, message: &str| {
                SourceUnit::Problem(format!("{place}:{line}: {message}"))
            };
            // The receiver is closed when the import has failed.
            let is_over = match file.kind {
                SourceFormat::Markdown | SourceFormat::Html => {
                    send.blocking_send(SourceUnit::File(file)).is_err()
                }
                SourceFormat::WordPress => {
                    let told = wordpress::read(&file.content, |found| {
                        let unit = match found {
                            wordpress::ItemOutcome::Count(count) => {
                                SourceUnit::More(count.saturating_sub(1))
                            }
                            wordpress::ItemOutcome::Post(raw) => {
                                SourceUnit::Post(place.clone(), file.location(), raw)
                            }
                            wordpress::ItemOutcome::LeftOut(finding) => {
                                SourceUnit::LeftOut(place.clone(), finding)
                            }
                            wordpress::ItemOutcome::Problem(line, message) => at(line, &message),
                        };
                        match send.blocking_send(unit) {
                            Ok(()) => ControlFlow::Continue(()),
                            Err(_) => ControlFlow::Break(()),
                        }
                    });
                    let problem = told.err().map(|(line, message)| at(line, &message));
                    problem.is_some_and(|unit| send.blocking_send(unit).is_err())
                }
                SourceFormat::Ghost => {
                    let units = match ghost::read(&file.content) {
                        Ok(posts) => posts
                            .into_iter()
                            .map(|post| match post {
                                Ok(raw) => {
                                    SourceUnit::Post(place.clone(), file.location(), Box::new(raw))
                                }
                                Err(message) => SourceUnit::Problem(format!("{place}: {message}")),
                            })
                            .collect(),
                        Err((line, message)) => vec![at(line, &message)],
                    };
                    units.into_iter().any(|unit| send.blocking_send(unit).is_err())
                }
            };
            if is_over {
                return;
            }
        }
    });
    units
}

/// A parsed piece, or a message about an invalid one.
pub(crate) enum ParsedSource {
    /// A document, with its reservation in the content budget.
    Document(Box<Document>, Option<OwnedSemaphorePermit>),
    LeftOut(String, ImportFinding),
    Problem(String),
    More(u64),
}

/// Parses all sources, several at a time and ahead of the receiver. Sends the outcomes in the
/// sources' order.
pub(crate) fn outcomes(
    files: Vec<SourceFile>,
    form: ContentForm,
    now: Timestamp,
    assets: Option<Arc<AssetImporter>>,
) -> Receiver<ParsedSource> {
    let (send, outcomes) = channel(PARSED_QUEUE_LIMIT);
    let content_budget = Arc::new(Semaphore::new(CONTENT_BUDGET));
    let mut units = units(files);
    tokio::spawn(async move {
        let mut some = Vec::new();
        while units.recv_many(&mut some, PARSE_CONCURRENCY).await > 0 {
            let mut tasks = Vec::with_capacity(some.len());
            for unit in some.drain(..) {
                let assets = assets.clone();
                let parse = move || one(unit, form, now, assets.as_deref());
                tasks.push(tokio::task::spawn_blocking(parse));
            }
            for task in tasks {
                let lost = |_| ParsedSource::Problem("a file could not be read".to_owned());
                let mut outcome = task.await.unwrap_or_else(lost);
                if let ParsedSource::Document(document, permit) = &mut outcome {
                    let size = document.content.len().min(CONTENT_BUDGET);
                    let size = u32::try_from(size).unwrap_or(u32::MAX);
                    *permit = Arc::clone(&content_budget).acquire_many_owned(size).await.ok();
                }
                // The receiver is closed when the import has failed.
                if send.send(outcome).await.is_err() {
                    return;
                }
            }
        }
    });
    outcomes
}

fn one(
    unit: SourceUnit,
    form: ContentForm,
    now: Timestamp,
    assets: Option<&AssetImporter>,
) -> ParsedSource {
    let (place, read) = match unit {
        SourceUnit::File(file) => (file.place.clone(), parse_file(&file, form, now, assets)),
        SourceUnit::Post(place, location, raw) => {
            let place = format!("{place}: {}", raw.name);
            let read = raw.into_document(form, now, assets.map(|assets| (assets, &location)));
            let read = read.map_err(|problem| format!("{place}: {problem}"));
            (place, read)
        }
        SourceUnit::LeftOut(place, finding) => return ParsedSource::LeftOut(place, finding),
        SourceUnit::Problem(problem) => return ParsedSource::Problem(problem),
        SourceUnit::More(count) => return ParsedSource::More(count),
    };
    match read {
        Ok(document) => ParsedSource::Document(Box::new(Document { place, ..document }), None),
        Err(problem) => ParsedSource::Problem(problem),
    }
}

fn parse_file(
    file: &SourceFile,
    form: ContentForm,
    now: Timestamp,
    assets: Option<&AssetImporter>,
) -> Result<Document, String> {
    let path = &file.place;
    let read;
    let text = match &file.content {
        SourceContent::Text(text) => text,
        SourceContent::File(path) => {
            read = read_text(path)?;
            &read
        }
    };
    let mut raw = if file.kind == SourceFormat::Html {
        html::raw(&file.name, text)
    } else {
        let parts = front_matter::split(text)
            .map_err(|malformed| format!("{path}:{}: {}", malformed.line, malformed.message))?;
        markdown::raw(&file.name, parts.fields, parts.body)
    };
    raw.language.clone_from(&file.language);
    if let Some(variant) = &raw.variant {
        let language = raw.language.as_deref().unwrap_or_default();
        if !language.eq_ignore_ascii_case(variant) {
            return Err(format!(
                "{path}: is the variant {variant} of a piece; the import has no language {variant}"
            ));
        }
    }
    let location = file.location();
    let document = raw.into_document(form, now, assets.map(|assets| (assets, &location)));
    document.map_err(|problem| format!("{path}: {problem}"))
}

fn read_text(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let size = std::fs::metadata(path).map_err(|error| format!("{shown}: {error}"))?.len();
    if size > FILE_SIZE_LIMIT {
        return Err(format!("{shown}: has {size} bytes, more than the limit of {FILE_SIZE_LIMIT}"));
    }
    let bytes = std::fs::read(path).map_err(|error| format!("{shown}: {error}"))?;
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.split(|&byte| byte == b'\n').count();
        format!("{shown}:{line}: is not UTF-8")
    })
}
