//! What an endpoint or an operation ends in when it doesn't succeed: the one place where the store's
//! errors become statuses.

use axum::http::HeaderValue;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Response};
use galley_runtime::Overloaded;
use galley_storage as storage;

use crate::housekeeping;
use crate::http::problem::{Issue, Problem, Reason, Step};

/// A problem to tell the client of, or a failure of the store.
#[derive(Debug)]
pub struct Error(Kind);

#[derive(Debug)]
enum Kind {
    Problem(Box<Problem>),
    Storage(storage::Error),
}

impl Error {
    /// Refuses a request for these issues, if there are any.
    pub(crate) fn refuse(issues: Vec<Issue>) -> Result<(), Self> {
        if issues.is_empty() { Ok(()) } else { Err(Problem::of_issues(issues).into()) }
    }

    /// Why the request is refused, if it is.
    pub(crate) fn reason(&self) -> Option<Reason> {
        match &self.0 {
            Kind::Problem(problem) => Some(problem.reason),
            Kind::Storage(_) => None,
        }
    }

    /// The same, where what it is about stands within a greater whole.
    pub(crate) fn within(self, place: &[Step]) -> Self {
        match self.0 {
            Kind::Problem(problem) if !problem.issues.is_empty() => {
                let issues = problem.issues.into_iter().map(|issue| issue.within(place));
                Problem::of_issues(issues.collect()).into()
            }
            kind => Self(kind),
        }
    }

    /// There is no such thing, or not in this workspace.
    pub(crate) fn not_found() -> Self {
        Problem::not_found().into()
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Kind::Problem(problem) => out.write_str(&problem.detail),
            Kind::Storage(error) => error.fmt(out),
        }
    }
}

impl std::error::Error for Error {}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Self(Kind::Problem(Box::new(problem)))
    }
}

impl From<storage::Error> for Error {
    fn from(error: storage::Error) -> Self {
        Self(Kind::Storage(error))
    }
}

impl From<Overloaded> for Error {
    fn from(overloaded: Overloaded) -> Self {
        storage::Error::from(overloaded).into()
    }
}

impl storage::Failure for Error {
    fn storage_error(&self) -> Option<&storage::Error> {
        match &self.0 {
            Kind::Problem(_) => None,
            Kind::Storage(error) => Some(error),
        }
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        match self.0 {
            Kind::Problem(problem) => problem.into_response(),
            Kind::Storage(error) => problem_of(&error).into_response(),
        }
    }
}

/// What the client is told of a failure of the store; the cause goes to the log.
fn problem_of(error: &storage::Error) -> Problem {
    use storage::Error as E;
    let (reason, detail, retry_after) = match error {
        E::StorageFull => (
            Reason::StorageFull,
            "nothing was changed; the operator has to make room on the disk",
            Some("60"),
        ),
        E::Detached(_) => {
            housekeeping::measure_files(false);
            (
                Reason::DatabaseUnavailable,
                "the database's files were deleted or replaced on the server; it writes nothing until \
                 it is started again",
                Some("60"),
            )
        }
        E::Unavailable(_) => (
            Reason::DatabaseUnavailable,
            "the database can't be reached; whether a change was made is not known if it was \
             being committed",
            Some("5"),
        ),
        E::Overloaded | E::Crowded(..) | E::TimedOut | E::Conflict | E::Taken(_) => {
            (Reason::Overloaded, "nothing was changed; try again", Some("1"))
        }
        E::Panicked
        | E::AwaitedElsewhere(_)
        | E::Corrupt(_)
        | E::Schema(_)
        | E::Settings(_)
        | E::Locked(_)
        | E::Engine(_) => (Reason::Internal, "the log has the cause under this request's id", None),
    };
    if reason == Reason::Overloaded {
        tracing::warn!(%error, "the store refused");
    } else {
        tracing::error!(%error, "the store failed");
    }
    let problem = Problem::new(reason, detail);
    match retry_after {
        Some(seconds) => problem.with_header(RETRY_AFTER, HeaderValue::from_static(seconds)),
        None => problem,
    }
}
