//! The error of operations: a rejection, or a failure of the store.

use galley_api_types::problem::{Issue, Step};
use galley_assets::StoreError;
use galley_runtime::Overloaded;
use galley_storage as storage;

use crate::rejection::{Reason, Rejection};

/// The error of an operation, which changed nothing.
#[derive(Debug)]
pub enum Error {
    /// The request was rejected.
    Rejected(Box<Rejection>),
    /// The store failed.
    Storage(storage::Error),
}

impl Error {
    /// Rejects a request that has issues.
    pub fn reject_issues(issues: Vec<Issue>) -> Result<(), Self> {
        if issues.is_empty() { Ok(()) } else { Err(Rejection::of_issues(issues).into()) }
    }

    /// Returns the reason of a rejection.
    pub fn reason(&self) -> Option<Reason> {
        match self {
            Self::Rejected(rejection) => Some(rejection.reason),
            Self::Storage(_) => None,
        }
    }

    /// Prepends `place` to the paths of all issues.
    pub fn prefixed(self, place: &[Step]) -> Self {
        match self {
            Self::Rejected(rejection) if !rejection.issues.is_empty() => {
                let Rejection { issues, duplicates, .. } = *rejection;
                let issues = issues.into_iter().map(|issue| issue.prefixed(place)).collect();
                Rejection { duplicates, ..Rejection::of_issues(issues) }.into()
            }
            other => other,
        }
    }

    /// Returns the rejection of a request for a resource that does not exist in this workspace.
    pub fn not_found() -> Self {
        Rejection::not_found().into()
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rejected(rejection) => out.write_str(&rejection.detail),
            Self::Storage(error) => error.fmt(out),
        }
    }
}

impl std::error::Error for Error {}

impl From<Rejection> for Error {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(Box::new(rejection))
    }
}

impl From<storage::Error> for Error {
    fn from(error: storage::Error) -> Self {
        Self::Storage(error)
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound => Self::not_found(),
            failed => {
                tracing::error!(error = %failed, "the store of assets failed");
                let detail = "the store of assets does not respond as expected: try again later";
                Rejection::new(Reason::AssetStoreUnavailable, detail).retry_after(10).into()
            }
        }
    }
}

impl From<Overloaded> for Error {
    fn from(overloaded: Overloaded) -> Self {
        storage::Error::from(overloaded).into()
    }
}

impl storage::Failure for Error {
    fn storage_error(&self) -> Option<&storage::Error> {
        match self {
            Self::Rejected(_) => None,
            Self::Storage(error) => Some(error),
        }
    }
}
