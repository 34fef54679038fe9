//! The cause of an error, for messages.

/// Returns the message of an error's root cause.
pub(crate) fn root_cause(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes.last().map_or_else(|| error.to_string(), ToString::to_string)
}
