//! Errors of mail settings and of attempts to send.

/// The error for a setting that can't work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidMailSetting(pub(crate) String);

/// The reason why a mail was not sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// A permanent rejection of this mail. A retry fails as well.
    #[error("{0}")]
    Rejected(String),
    /// A failure that may be temporary. A retry may succeed.
    #[error("{0}")]
    Failed(String),
}
