//! Rejection of unknown query parameters.
//!
//! The known parameters of an endpoint are the documented ones. So a misspelt filter is rejected,
//! and an undocumented parameter can't be used.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use axum::extract::MatchedPath;
use axum::http::Method;
use axum::http::request::Parts;
use galley_api_types::problem::{Issue, Step};
use galley_application::Error;
use galley_domain::Invalid;

use crate::app::App;
use crate::extract::prefer::{Handling, handling};

/// The names of the query parameters of each endpoint, by path and method.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownParameters(Arc<HashMap<(String, Method), Vec<String>>>);

impl FromIterator<((String, Method), Vec<String>)> for KnownParameters {
    fn from_iter<I: IntoIterator<Item = ((String, Method), Vec<String>)>>(all: I) -> Self {
        Self(Arc::new(all.into_iter().collect()))
    }
}

impl KnownParameters {
    /// Returns the parameters of a request's endpoint.
    fn of(&self, parts: &Parts) -> &[String] {
        let path = parts.extensions.get().map_or("", MatchedPath::as_str).to_owned();
        let method = if parts.method == Method::HEAD { Method::GET } else { parts.method.clone() };
        self.0.get(&(path, method)).map_or(&[], Vec::as_slice)
    }
}

/// The similarity from which a known name is suggested.
const SUGGESTED_FROM: f64 = 0.6;

/// The limit of reported parameters. A query may have thousands, and each is compared with all
/// known names.
const ISSUES_MAX: usize = 20;

/// The endpoint whose parameters the identity provider chooses. RFC 6749, section 4.1.2, allows it
/// to add some.
const CALLBACK: &str = "/sign-in/callback";

/// Rejects unknown query parameters, unless the client or the setting accepts them.
pub(crate) fn check(parts: &Parts, app: &App) -> Result<(), Error> {
    let query = parts.uri.query().unwrap_or_default();
    let is_callback = parts.uri.path() == CALLBACK;
    if query.is_empty() || is_callback || ignores_unknown(parts, app) {
        return Ok(());
    }
    let Some(known) = parts.extensions.get::<KnownParameters>() else { return Ok(()) };
    let known = known.of(parts);
    let given = form_urlencoded::parse(query.as_bytes()).map(|(name, _)| name);
    // A repeated parameter is reported once.
    let given: BTreeSet<_> =
        given.filter(|given| known.iter().all(|known| known != given)).collect();
    let issues = given.iter().take(ISSUES_MAX).map(|name| unknown(name, known)).collect();
    Error::reject_issues(issues)
}

fn ignores_unknown(parts: &Parts, app: &App) -> bool {
    match handling(&parts.headers) {
        Some(Handling::Lenient) => true,
        Some(Handling::Strict) => false,
        None => app.limits().ignores_unknown_parameters,
    }
}

fn unknown(name: &str, known: &[String]) -> Issue {
    let message = match nearest(name, known) {
        Some(nearest) => format!("is not a parameter of this request; did you mean {nearest}?"),
        None if known.is_empty() => "is not a parameter: this request has none".to_owned(),
        None => {
            format!("is not a parameter of this request, which has {}", known.join(", "))
        }
    };
    let invalid = Invalid::new("unknown_parameter", message);
    Issue::new(vec![Step::Field(name.to_owned())], &invalid)
}

/// Returns the most similar known name, if one is similar enough to be meant.
pub(crate) fn nearest<'k>(name: &str, known: &'k [impl AsRef<str>]) -> Option<&'k str> {
    let name = name.to_lowercase();
    let similarity =
        |known: &str| strsim::normalized_damerau_levenshtein(&name, &known.to_lowercase());
    let all = known.iter().map(|known| (similarity(known.as_ref()), known.as_ref()));
    let similar = all.filter(|(similarity, _)| *similarity >= SUGGESTED_FROM);
    similar.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested() {
        let known = ["contentGroupId", "tagId", "slug", "perPage", "page"].map(str::to_owned);
        for (given, suggested) in [
            ("contentGruopId", Some("contentGroupId")),
            ("contentgroupid", Some("contentGroupId")),
            ("tag", Some("tagId")),
            ("per_page", Some("perPage")),
            ("pages", Some("page")),
            ("q", None),
            ("", None),
        ] {
            assert_eq!(nearest(given, &known), suggested, "{given}");
        }
    }
}
