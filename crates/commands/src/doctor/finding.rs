//! The result of one check.

use serde::Serialize;

/// The severity of a finding. The greatest one decides the exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    Ok,
    Warning,
    Failure,
}

/// A description of a sound part, or a problem with its remedy.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Finding {
    severity: Severity,
    message: String,
}

impl Finding {
    pub(crate) fn ok(message: impl Into<String>) -> Self {
        Self { severity: Severity::Ok, message: message.into() }
    }

    pub(crate) fn warning(message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, message: message.into() }
    }

    pub(crate) fn failure(message: impl Into<String>) -> Self {
        Self { severity: Severity::Failure, message: message.into() }
    }

    /// Returns a finding about a part that another problem prevents from being checked.
    pub(crate) fn unknown() -> Self {
        Self::warning("unknown without the database")
    }

    pub(crate) fn severity(&self) -> Severity {
        self.severity
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }
}

impl From<Result<String, String>> for Finding {
    fn from(result: Result<String, String>) -> Self {
        result.map_or_else(Self::failure, Self::ok)
    }
}
