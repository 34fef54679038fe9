//! Preferences of clients (RFC 7240): `return=representation` for the resource in the response to a
//! change, `max-age=SECONDS` for content that may be stale by that time, and `handling=lenient` for
//! requests with unknown parameters.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::header::AGE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use galley_application::StalenessBound;
use galley_storage::Database;

use crate::describe::arguments;

pub(crate) const PREFER: HeaderName = HeaderName::from_static("prefer");

/// The response header that states the applied preference.
pub(crate) const APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// Returns the value of a preference. If it occurs twice, the first one counts.
pub(crate) fn preferred<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let values = headers.get_all(PREFER).iter().filter_map(|value| value.to_str().ok());
    // The text after a semicolon is a parameter of the preference before it.
    let preferences = values.flat_map(|value| split_unquoted(value, ','));
    preferences
        .filter_map(|preference| split_unquoted(preference, ';').next()?.split_once('='))
        .find(|(known, _)| known.trim().eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim().trim_matches('"'))
}

/// Splits a text at the separators outside of quoted strings.
pub(crate) fn split_unquoted(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.split(move |character| {
        if character == '"' && !is_escaped {
            is_quoted = !is_quoted;
        }
        is_escaped = is_quoted && character == '\\' && !is_escaped;
        character == separator && !is_quoted
    })
}

/// The preferred response to a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prefer {
    /// The minimal response: an id, or no body.
    Minimal,
    /// The whole resource.
    Representation,
}

impl<S: Sync> FromRequestParts<S> for Prefer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.headers))
    }
}

impl Prefer {
    /// Returns the preference of a request.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        match preferred(headers, "return") {
            Some("representation") => Self::Representation,
            _ => Self::Minimal,
        }
    }
}

arguments! { Prefer: prefer; }

/// The preferred handling of errors that the server can ignore.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Handling {
    /// They are rejected.
    Strict,
    /// They are ignored.
    Lenient,
}

/// Returns the preferred handling of a request, if it states one.
pub(crate) fn handling(headers: &HeaderMap) -> Option<Handling> {
    match preferred(headers, "handling") {
        Some("strict") => Some(Handling::Strict),
        Some("lenient") => Some(Handling::Lenient),
        _ => None,
    }
}

/// Returns the staleness bound of a request. It is empty without a replica.
pub(crate) fn staleness_bound(headers: &HeaderMap, database: &Database) -> StalenessBound {
    let wanted = preferred(headers, "max-age").filter(|_| database.has_replica());
    let wanted = wanted.filter(|seconds| seconds.bytes().all(|byte| byte.is_ascii_digit()));
    let max_age = wanted.and_then(|seconds| seconds.parse().ok());
    StalenessBound::new(max_age.filter(|&max_age| max_age > 0))
}

/// Adds the headers for stale data, if it was read.
pub(crate) fn write_staleness(staleness: &StalenessBound, headers: &mut HeaderMap) {
    let Some((max_age, age)) = staleness.stale_read() else { return };
    headers.insert(AGE, age.as_millis().div_ceil(1_000).try_into().unwrap_or(u64::MAX).into());
    let applied = HeaderValue::try_from(format!("max-age={max_age}"));
    headers.insert(APPLIED, applied.expect("numbers are ASCII"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preferences_are_found_by_name() {
        for (text, max_age) in [
            ("max-age=10", Some("10")),
            ("return=representation, Max-Age = \"10\"; x=1", Some("10")),
            ("foo; max-age=10", None),
            ("foo=\"a, max-age=10\"", None),
            ("foo=\"a\\\", max-age=10\", max-age=5", Some("5")),
            ("max-age=1, max-age=2", Some("1")),
            ("", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(PREFER, HeaderValue::try_from(text).unwrap());
            assert_eq!(preferred(&headers, "max-age"), max_age, "{text}");
        }
    }
}
