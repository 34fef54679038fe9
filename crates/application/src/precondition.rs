//! Preconditions on the version of a resource.

use crate::error::Error;
use crate::rejection::{Reason, Rejection};

/// Which version of a resource a change is meant for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// Whichever it has.
    Any,
    /// One of these; another one has been changed since the client read it.
    OneOf(Vec<i64>),
}

impl Expected {
    /// Refuses a change of a resource that has another version by now.
    pub fn check(&self, version: i64) -> Result<(), Error> {
        match self {
            Self::OneOf(versions) if !versions.contains(&version) => {
                let detail = "the resource has changed since it was read: get it again";
                Err(Rejection::new(Reason::PreconditionFailed, detail).into())
            }
            _ => Ok(()),
        }
    }
}
