//! Rejection of unknown query parameters.
//!
//! The known parameters of an endpoint are the documented ones. So a misspelt filter is rejected,
//! and an undocumented parameter can't be used.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use axum::extract::MatchedPath;
use axum::http::Method;
use axum::http::request::Parts;
use galley_api_types::problem::{Issue, Step};
use galley_application::Error;
use galley_domain::Invalid;
use serde::Deserialize;

use crate::app::App;
use crate::extract::prefer::{Handling, handling};
use crate::resources::openapi_document::openapi_text;

/// The parameter that the OpenAPI document omits. Its response would make the result of every
/// creation and change a union in generated clients.
pub(crate) const UNDESCRIBED_PARAMETER: &str = "dryRun";

/// The endpoints that have the omitted parameter.
const WITH_UNDESCRIBED_PARAMETER: [(&str, Method); 3] = [
    ("/content-pieces", Method::POST),
    ("/content-pieces", Method::PUT),
    ("/content-pieces/batch", Method::POST),
];

/// The names of the query parameters of each endpoint, by path and method.
static KNOWN: LazyLock<HashMap<(String, Method), Vec<String>>> = LazyLock::new(|| {
    let document: OpenApiDocument =
        serde_json::from_str(&openapi_text()).expect("the tests compare it with the code");
    let shared = &document.components.parameters;
    let mut known = HashMap::new();
    for (path, operations) in document.paths {
        for (method, operation) in operations {
            let method = method.to_ascii_uppercase().parse().expect("it is a method");
            let parameters = operation.parameters.iter().map(|parameter| parameter.whole(shared));
            let of_query = parameters.filter(|parameter| parameter.place == "query");
            let mut names: Vec<_> = of_query.map(|parameter| parameter.name.clone()).collect();
            let endpoint = (path.as_str(), method);
            if WITH_UNDESCRIBED_PARAMETER.contains(&endpoint) {
                names.push(UNDESCRIBED_PARAMETER.to_owned());
            }
            known.insert((path.clone(), endpoint.1), names);
        }
    }
    known
});

/// The parts of the OpenAPI document with the parameters.
#[derive(Deserialize)]
struct OpenApiDocument {
    paths: HashMap<String, HashMap<String, Operation>>,
    components: Components,
}

#[derive(Deserialize)]
struct Components {
    parameters: HashMap<String, Parameter>,
}

#[derive(Deserialize)]
struct Operation {
    #[serde(default)]
    parameters: Vec<Parameter>,
}

/// A parameter, or a reference to a shared one.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Parameter {
    #[serde(rename = "$ref")]
    reference: Option<String>,
    name: String,
    #[serde(rename = "in")]
    place: String,
}

impl Parameter {
    fn whole<'p>(&'p self, shared: &'p HashMap<String, Self>) -> &'p Self {
        let Some(reference) = &self.reference else { return self };
        &shared[reference.trim_start_matches("#/components/parameters/")]
    }
}

/// Returns the query parameters of an endpoint.
pub(crate) fn known_to(path: &str, method: &Method) -> &'static [String] {
    let method = if *method == Method::HEAD { Method::GET } else { method.clone() };
    KNOWN.get(&(path.to_owned(), method)).map_or(&[], Vec::as_slice)
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
    let path = parts.extensions.get().map_or("", MatchedPath::as_str);
    let known = known_to(path, &parts.method);
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
