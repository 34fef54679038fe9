//! Preferences of clients (RFC 7240): `return=representation` for the resource in the response to a
//! change, and `max-age=SECONDS` for content that may be stale by that time.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::header::AGE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use galley_storage::{Database, Failure, Tx};

use crate::describe::{HandlerArgument, HandlerFacts};

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
fn split_unquoted(text: &str, separator: char) -> impl Iterator<Item = &str> {
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
        Ok(match preferred(&parts.headers, "return") {
            Some("representation") => Self::Representation,
            _ => Self::Minimal,
        })
    }
}

impl HandlerArgument for Prefer {
    fn add_facts(facts: &mut HandlerFacts) {
        facts.prefer = true;
    }
}

/// The staleness bound of a request, and the age of the data that was read for it. Clones share it,
/// from the read to the headers of the response.
#[derive(Debug, Clone, Default)]
pub(crate) struct StalenessBound(Option<Arc<AllowedStaleness>>);

#[derive(Debug, Default)]
struct AllowedStaleness {
    max_age: u64,
    age: OnceLock<Duration>,
    is_forbidden: AtomicBool,
}

impl StalenessBound {
    /// Returns the staleness bound of a request. It is empty without a replica.
    pub(crate) fn from_headers(headers: &HeaderMap, database: &Database) -> Self {
        let wanted = preferred(headers, "max-age").filter(|_| database.has_replica());
        let wanted = wanted.filter(|seconds| seconds.bytes().all(|byte| byte.is_ascii_digit()));
        let max_age =
            wanted.and_then(|seconds| seconds.parse().ok()).filter(|&max_age| max_age > 0);
        Self(
            max_age.map(|max_age| {
                Arc::new(AllowedStaleness { max_age, ..AllowedStaleness::default() })
            }),
        )
    }

    /// Returns true if the request allows stale reads.
    pub(crate) fn allows_stale(&self) -> bool {
        self.allowed().is_some()
    }

    /// Forbids stale reads: older data may show content that the token must not see.
    pub(crate) fn forbid_stale(&self) {
        if let Some(allowed) = &self.0 {
            allowed.is_forbidden.store(true, Ordering::Relaxed);
        }
    }

    fn allowed(&self) -> Option<&Arc<AllowedStaleness>> {
        self.0.as_ref().filter(|allowed| !allowed.is_forbidden.load(Ordering::Relaxed))
    }

    /// Returns true if stale data was read.
    pub(crate) fn is_stale(&self) -> bool {
        self.0.as_ref().is_some_and(|allowed| allowed.age.get().is_some())
    }

    /// Reads content, from a standby of the database if stale reads are allowed.
    pub(crate) async fn read<T, E, F>(
        &self,
        database: &Database,
        name: &'static str,
        operation: F,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: Failure,
        F: AsyncFn(&Tx<'_>) -> Result<T, E> + Send + Sync + 'static,
    {
        let Some(allowed) = self.allowed() else { return database.read(name, operation).await };
        let age_max = Duration::from_secs(allowed.max_age);
        let (value, age) = database.read_stale(name, age_max, operation).await?;
        if let Some(age) = age {
            let _ = allowed.age.set(age);
        }
        Ok(value)
    }

    /// Adds the headers for stale data, if it was read.
    pub(crate) fn write(&self, headers: &mut HeaderMap) {
        let Some(allowed) = &self.0 else { return };
        let Some(age) = allowed.age.get() else { return };
        headers.insert(AGE, age.as_millis().div_ceil(1_000).try_into().unwrap_or(u64::MAX).into());
        let applied = HeaderValue::try_from(format!("max-age={}", allowed.max_age));
        headers.insert(APPLIED, applied.expect("numbers are ASCII"));
    }
}

impl<S: Sync> FromRequestParts<S> for StalenessBound {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().cloned().unwrap_or_default())
    }
}

impl HandlerArgument for StalenessBound {
    fn add_facts(facts: &mut HandlerFacts) {
        facts.allows_stale = true;
    }
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
