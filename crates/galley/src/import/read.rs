//! Reads files and converts them to documents, on threads of their own and several at a time.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::mpsc::{Receiver, channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::findings::Finding;
use super::raw::{Document, Form, Raw};
use super::sources::{Kind, SourceFile};
use super::{front_matter, ghost, html, markdown, wordpress};

/// The size limit of a file with one piece.
const FILE_MAX: u64 = 8 * 1024 * 1024;

/// The number of found pieces that may wait for parsing.
const FOUND_AHEAD: usize = 32;

/// The number of parsed pieces that may wait for writing, and the limit of their content, in bytes.
const READ_AHEAD: usize = 64;
const CONTENT_AHEAD: usize = 8 * 1024 * 1024;

/// The number of pieces that are parsed concurrently.
const AT_ONCE: usize = 4;

/// A source to parse, or a result of the search.
enum Unit {
    File(SourceFile),
    /// A post of an export, and the export's path.
    Post(String, Box<Raw>),
    /// A finding about an export, and the export's path.
    LeftOut(String, Finding),
    Problem(String),
    /// The number of sources to come beyond the number of files.
    More(u64),
}

/// Reads the files on a thread, and sends their units in order.
fn units(files: Vec<SourceFile>) -> Receiver<Unit> {
    let (send, units) = channel(FOUND_AHEAD);
    std::thread::spawn(move || {
        for file in files {
            let place = file.path.display().to_string();
            let at =
                |line: usize, message: &str| Unit::Problem(format!("{place}:{line}: {message}"));
            // The receiver is closed when the import has failed.
            let is_over = match file.kind {
                Kind::Markdown | Kind::Html => send.blocking_send(Unit::File(file)).is_err(),
                Kind::WordPress => {
                    let told = wordpress::read(&file.path, |found| {
                        let unit = match found {
                            wordpress::Found::Count(count) => Unit::More(count.saturating_sub(1)),
                            wordpress::Found::Post(raw) => Unit::Post(place.clone(), raw),
                            wordpress::Found::LeftOut(finding) => {
                                Unit::LeftOut(place.clone(), finding)
                            }
                            wordpress::Found::Problem(line, message) => at(line, &message),
                        };
                        match send.blocking_send(unit) {
                            Ok(()) => ControlFlow::Continue(()),
                            Err(_) => ControlFlow::Break(()),
                        }
                    });
                    let problem = told.err().map(|(line, message)| at(line, &message));
                    problem.is_some_and(|unit| send.blocking_send(unit).is_err())
                }
                Kind::Ghost => {
                    let units = match ghost::read(&file.path) {
                        Ok(posts) => posts
                            .into_iter()
                            .map(|post| match post {
                                Ok(raw) => Unit::Post(place.clone(), Box::new(raw)),
                                Err(message) => Unit::Problem(format!("{place}: {message}")),
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
pub(super) enum Outcome {
    /// A document, with its reservation in the content budget.
    Document(Box<Document>, Option<OwnedSemaphorePermit>),
    LeftOut(String, Finding),
    Problem(String),
    More(u64),
}

/// Parses all sources, several at a time and ahead of the receiver. Sends the outcomes in the
/// sources' order.
pub(super) fn outcomes(files: Vec<SourceFile>, form: Form) -> Receiver<Outcome> {
    let (send, outcomes) = channel(READ_AHEAD);
    let room = Arc::new(Semaphore::new(CONTENT_AHEAD));
    let mut units = units(files);
    tokio::spawn(async move {
        let mut some = Vec::new();
        while units.recv_many(&mut some, AT_ONCE).await > 0 {
            let mut tasks = Vec::with_capacity(some.len());
            for unit in some.drain(..) {
                tasks.push(tokio::task::spawn_blocking(move || one(unit, form)));
            }
            for task in tasks {
                let lost = |_| Outcome::Problem("a file could not be read".to_owned());
                let mut outcome = task.await.unwrap_or_else(lost);
                if let Outcome::Document(document, permit) = &mut outcome {
                    let size = document.content.len().min(CONTENT_AHEAD);
                    let size = u32::try_from(size).unwrap_or(u32::MAX);
                    *permit = Arc::clone(&room).acquire_many_owned(size).await.ok();
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

fn one(unit: Unit, form: Form) -> Outcome {
    let (place, read) = match unit {
        Unit::File(file) => (file.path.display().to_string(), of_file(&file, form)),
        Unit::Post(place, raw) => {
            let place = format!("{place}: {}", raw.name);
            let read = raw.into_document(form).map_err(|problem| format!("{place}: {problem}"));
            (place, read)
        }
        Unit::LeftOut(place, finding) => return Outcome::LeftOut(place, finding),
        Unit::Problem(problem) => return Outcome::Problem(problem),
        Unit::More(count) => return Outcome::More(count),
    };
    match read {
        Ok(document) => Outcome::Document(Box::new(Document { place, ..document }), None),
        Err(problem) => Outcome::Problem(problem),
    }
}

fn of_file(file: &SourceFile, form: Form) -> Result<Document, String> {
    let path = file.path.display();
    let text = text_of(&file.path)?;
    let mut raw = if file.kind == Kind::Html {
        html::raw(&file.name, &text)
    } else {
        let parts = front_matter::split(&text)
            .map_err(|malformed| format!("{path}:{}: {}", malformed.line, malformed.message))?;
        markdown::raw(&file.name, parts.fields, parts.body)
    };
    raw.language.clone_from(&file.language);
    raw.into_document(form).map_err(|problem| format!("{path}: {problem}"))
}

fn text_of(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let size = std::fs::metadata(path).map_err(|error| format!("{shown}: {error}"))?.len();
    if size > FILE_MAX {
        return Err(format!("{shown}: has {size} bytes, and at most {FILE_MAX} are read"));
    }
    let bytes = std::fs::read(path).map_err(|error| format!("{shown}: {error}"))?;
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.split(|&byte| byte == b'\n').count();
        format!("{shown}:{line}: is not UTF-8")
    })
}
