//! What a client prefers (RFC 7240): `return=representation`, the resource in the answer to its change, and
//! `max-age=SECONDS`, content as it was at most so long ago.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::header::AGE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use galley_storage::{Database, Failure, Tx};

use crate::describe::{Argument, Facts};

pub(crate) const PREFER: HeaderName = HeaderName::from_static("prefer");

/// The header of an answer that says which preference was heeded.
pub(crate) const APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// The value of a preference. Of two, the first counts.
pub(crate) fn preferred<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let values = headers.get_all(PREFER).iter().filter_map(|value| value.to_str().ok());
    // What comes after a semicolon is about the preference before it.
    let preferences = values.flat_map(|value| split_unquoted(value, ','));
    preferences
        .filter_map(|preference| split_unquoted(preference, ';').next()?.split_once('='))
        .find(|(known, _)| known.trim().eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim().trim_matches('"'))
}

/// The parts between separators that don't stand in a quoted string.
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

/// What a client wants to get back of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prefer {
    /// As little as there is to say.
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

impl Argument for Prefer {
    fn tell(facts: &mut Facts) {
        facts.prefer = true;
    }
}

/// How old content may be that is read for a request, and how old it is: from where it is read to where the answer's headers
/// are written.
#[derive(Debug, Clone, Default)]
pub(crate) struct StalenessBound(Option<Arc<Allowed>>);

#[derive(Debug, Default)]
struct Allowed {
    max_age: u64,
    age: OnceLock<Duration>,
    is_forbidden: AtomicBool,
}

impl StalenessBound {
    /// What a request allows, where that makes a difference.
    pub(crate) fn of(headers: &HeaderMap, database: &Database) -> Self {
        let wanted = preferred(headers, "max-age").filter(|_| database.has_replica());
        let wanted = wanted.filter(|seconds| seconds.bytes().all(|byte| byte.is_ascii_digit()));
        let max_age =
            wanted.and_then(|seconds| seconds.parse().ok()).filter(|&max_age| max_age > 0);
        Self(max_age.map(|max_age| Arc::new(Allowed { max_age, ..Allowed::default() })))
    }

    /// Whether what is read may be of a while ago.
    pub(crate) fn allows_stale(&self) -> bool {
        self.allowed().is_some()
    }

    /// Has all be of now: what somebody may see by now may have been something else a while ago.
    pub(crate) fn forbid_stale(&self) {
        if let Some(allowed) = &self.0 {
            allowed.is_forbidden.store(true, Ordering::Relaxed);
        }
    }

    fn allowed(&self) -> Option<&Arc<Allowed>> {
        self.0.as_ref().filter(|allowed| !allowed.is_forbidden.load(Ordering::Relaxed))
    }

    /// Whether what was read is.
    pub(crate) fn is_stale(&self) -> bool {
        self.0.as_ref().is_some_and(|allowed| allowed.age.get().is_some())
    }

    /// Reads content, of a standby of the database where it may be old.
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
        let (value, age) = database.read_aged(name, age_max, operation).await?;
        if let Some(age) = age {
            let _ = allowed.age.set(age);
        }
        Ok(value)
    }

    /// Adds how old what was read is, if it is.
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

impl Argument for StalenessBound {
    fn tell(facts: &mut Facts) {
        facts.allows_stale = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preferences_are_known_by_their_names() {
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
