//! The documented problem responses.

use axum::http::StatusCode;
use galley_api_types::problem::{Issue, Step};
use galley_application::{Reason, Rejection};
use serde_json::{Map, Value, json};

use crate::openapi::headers::{RATE_LIMIT_HEADERS, optional_header, refer_to_headers};
use crate::problem::{Problem, texts};

/// Parses the reasons in an annotation: the description of a response, separated by commas.
pub(super) fn documented_reasons(path: &str, status: &str, names: &Value) -> Vec<Reason> {
    let names = names.as_str().unwrap_or_default().split(',').map(str::trim);
    let reason = |name: &str| {
        let known = Reason::ALL
            .iter()
            .find(|reason| reason.as_str() == name && texts(**reason).status.as_str() == status);
        *known.unwrap_or_else(|| panic!("{path}: {name:?} is no reason of the status {status}"))
    };
    names.map(reason).collect()
}

/// Returns the problem response of this status with these possible reasons, and its component name.
pub(super) fn problem_response(status: StatusCode, reasons: &[Reason]) -> (String, Value) {
    let name = reasons.iter().map(|reason| format!("{reason:?}")).collect::<Vec<_>>().join("Or");
    let lines = reasons.iter().map(|reason| {
        let (name, title) = (reason.as_str(), texts(*reason).title);
        format!("[`{name}`](/problems/{name}): {title}.")
    });
    let examples: Map<String, Value> = reasons
        .iter()
        .map(|&reason| (reason.as_str().to_owned(), problem_example(reason)))
        .collect();
    let mut names = vec!["X-Request-Id", "Cache-Control"];
    match status {
        StatusCode::UNAUTHORIZED => names.push("WWW-Authenticate"),
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::INSUFFICIENT_STORAGE => names.push("Retry-After"),
        _ => {}
    }
    let mut headers = refer_to_headers(&names);
    if status == StatusCode::TOO_MANY_REQUESTS {
        for name in RATE_LIMIT_HEADERS {
            headers[name] = optional_header(name);
        }
    }
    let response = json!({
        "description": lines.collect::<Vec<_>>().join(" "),
        "headers": headers,
        "content": {
            "application/problem+json": {
                "schema": {"$ref": "#/components/schemas/Problem"},
                "examples": examples,
            },
        },
    });
    (name, response)
}

fn problem_example(reason: Reason) -> Value {
    let mut problem = Rejection::new(reason, texts(reason).cause.replace('`', ""));
    if reason == Reason::Validation {
        let required = galley_domain::Invalid::new("required", "is required");
        problem =
            Rejection::of_issues(vec![Issue::new(vec![Step::Field("id".to_owned())], &required)]);
    } else if reason == Reason::UnknownReference {
        let path = vec![Step::Field("tags".to_owned()), Step::Item(1)];
        problem = Rejection::of_issues(vec![Issue::unknown_reference(path, "tag")]);
    }
    let json = Problem::from(problem).to_json("01a1fc13012e52d457d806ffae31da64");
    let value: Value = serde_json::from_str(&json).expect("a problem is JSON");
    json!({"summary": texts(reason).title, "value": value})
}
