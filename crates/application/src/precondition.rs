//! Preconditions on the version of a resource.

use crate::error::Error;
use crate::rejection::{Reason, Rejection};

/// A precondition on the version of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionPrecondition {
    /// Any version.
    Any,
    /// One of these versions. With any other, the resource was changed since the client read it.
    OneOf(Vec<i64>),
}

impl VersionPrecondition {
    /// Rejects a change of a resource whose current version is another one.
    pub fn check_version(&self, version: i64) -> Result<(), Error> {
        match self {
            Self::OneOf(versions) if !versions.contains(&version) => {
                let detail = "the resource has changed since it was read: get it again";
                Err(Rejection::new(Reason::PreconditionFailed, detail).into())
            }
            _ => Ok(()),
        }
    }
}
