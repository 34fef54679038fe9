//! From files to documents: on threads of their own, some at a time.

use std::ops::ControlFlow;
use std::path::Path;

use tokio::sync::mpsc::{Receiver, channel};

use super::raw::{Document, Raw};
use super::sources::{Kind, SourceFile};
use super::{front_matter, ghost, html, markdown, wordpress};

/// The greatest file of one piece that is read.
const FILE_MAX: u64 = 8 * 1024 * 1024;

/// How many pieces are found ahead of those that are read.
const AHEAD: usize = 64;

/// Something to read, or what came of looking for it.
pub(super) enum Unit {
    File(SourceFile),
    /// A post of an export, and where it stands.
    Post(String, Box<Raw>),
    /// What is left out, in words that can be counted.
    LeftOut(String),
    Problem(String),
    /// So many more are to come than there are files.
    More(u64),
}

/// Looks through the files; what was found comes one after the other.
pub(super) fn units(files: Vec<SourceFile>) -> Receiver<Unit> {
    let (send, units) = channel(AHEAD);
    std::thread::spawn(move || {
        for file in files {
            let place = file.path.display().to_string();
            let at =
                |line: usize, message: &str| Unit::Problem(format!("{place}:{line}: {message}"));
            // Nobody listens any more when the import has failed.
            let is_over = match file.kind {
                Kind::Markdown | Kind::Html => send.blocking_send(Unit::File(file)).is_err(),
                Kind::WordPress => {
                    let told = wordpress::read(&file.path, |found| {
                        let unit = match found {
                            wordpress::Found::Count(count) => Unit::More(count.saturating_sub(1)),
                            wordpress::Found::Post(raw) => Unit::Post(place.clone(), raw),
                            wordpress::Found::LeftOut(what) => Unit::LeftOut(what),
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

/// A piece that was read, or a message that says what is wrong with it.
pub(super) enum Outcome {
    Document(Box<Document>),
    LeftOut(String),
    Problem(String),
    More(u64),
}

/// Reads units at the same time, and says what came of them in their order.
pub(super) async fn all(units: Vec<Unit>) -> Vec<Outcome> {
    let mut tasks = Vec::with_capacity(units.len());
    for unit in units {
        tasks.push(tokio::task::spawn_blocking(move || one(unit)));
    }
    let mut outcomes = Vec::with_capacity(tasks.len());
    for task in tasks {
        let lost = |_| Outcome::Problem("a file could not be read".to_owned());
        outcomes.push(task.await.unwrap_or_else(lost));
    }
    outcomes
}

fn one(unit: Unit) -> Outcome {
    let read = match unit {
        Unit::File(file) => of_file(&file),
        Unit::Post(place, raw) => {
            let name = raw.name.clone();
            raw.into_document().map_err(|problem| format!("{place}: {name}: {problem}"))
        }
        Unit::LeftOut(what) => return Outcome::LeftOut(what),
        Unit::Problem(problem) => return Outcome::Problem(problem),
        Unit::More(count) => return Outcome::More(count),
    };
    match read {
        Ok(document) => Outcome::Document(Box::new(document)),
        Err(problem) => Outcome::Problem(problem),
    }
}

fn of_file(file: &SourceFile) -> Result<Document, String> {
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
    raw.into_document().map_err(|problem| format!("{path}: {problem}"))
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
