//! Errors of settings and of attempts.

/// A setting that can't work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidSetting(pub(crate) String);

/// Why a mail was not sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotSent {
    /// The server will not take it, now or later.
    #[error("{0}")]
    Refused(String),
    /// Perhaps later.
    #[error("{0}")]
    Failed(String),
}
