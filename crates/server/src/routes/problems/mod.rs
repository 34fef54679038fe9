//! `/problems`: a page on each reason, where a problem's `type` leads.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::header::CONTENT_SECURITY_POLICY;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::http::error::Error;
use crate::http::problem::Reason;
use crate::http::response::{self, File};

/// Of every page.
const STYLE: &str = include_str!("page.css");

/// Nothing but that style.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let hash = STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    );
    HeaderValue::try_from(policy).expect("base 64 is ASCII")
});

/// List the reasons of problems
///
/// A page for people.
#[utoipa::path(
    get,
    path = "/problems",
    operation_id = "listProblems",
    responses((status = 200, body = String, content_type = "text/html")),
)]
pub(crate) async fn list() -> Response {
    let mut items = String::new();
    for reason in Reason::ALL {
        let (name, title) = (reason.as_str(), shown(reason.title()));
        let status = reason.status().as_u16();
        items.push_str(&format!(
            "<li><a href=\"/problems/{name}\">{title}</a> ({status} <code>{name}</code>)\n"
        ));
    }
    html(
        "Problems",
        &format!(
            "<h1>Problems</h1>\n<p>Each problem that Galley answers has one of these reasons, in its \
             field <code>reason</code>.</p>\n<ul>\n{items}</ul>\n\
             <nav><a href=\"/docs\">The API</a></nav>\n"
        ),
    )
}

/// Read what a problem means
///
/// A page for people on the cause and the cure. It is where the `type` of a problem leads.
#[utoipa::path(
    get,
    path = "/problems/{reason}",
    operation_id = "getProblem",
    params(("reason" = String, Path, description = "A problem's `reason`", example = "validation")),
    responses((status = 200, body = String, content_type = "text/html")),
)]
pub(crate) async fn page(name: Result<Path<String>, PathRejection>) -> Result<Response, Error> {
    let Path(name) = name.map_err(|_| Error::not_found())?;
    let reason = Reason::ALL.iter().find(|reason| reason.as_str() == name);
    let reason = reason.ok_or_else(Error::not_found)?;
    let (title, status) = (shown(reason.title()), in_words(reason.status()));
    let (cause, cure) = (shown(reason.cause()), shown(reason.cure()));
    let body = format!(
        "<h1>{title}</h1>\n<p>Status {status}, reason <code>{name}</code></p>\n\
         <h2>What it means</h2>\n<p>{cause}</p>\n<h2>What to do</h2>\n<p>{cure}</p>\n\
         <nav><a href=\"/problems\">All problems</a> · <a href=\"/docs\">The API</a></nav>\n"
    );
    Ok(html(&title, &body))
}

fn html(title: &str, body: &str) -> Response {
    let page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title} · Galley</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}</body>\n\
         </html>\n"
    );
    let mut response = response::file(&File::new("text/html; charset=utf-8", page.into_bytes()));
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, POLICY.clone());
    response
}

fn in_words(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(words) => format!("{} {words}", status.as_u16()),
        None => status.as_u16().to_string(),
    }
}

/// A text as HTML; what stands in backticks is code.
fn shown(text: &str) -> String {
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let parts = escaped.split('`').enumerate();
    let part = |(index, part): (usize, &str)| {
        if index % 2 == 1 { format!("<code>{part}</code>") } else { part.to_owned() }
    };
    parts.map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_and_code_is_marked() {
        assert_eq!(shown("a < b, `<b>` & c"), "a &lt; b, <code>&lt;b&gt;</code> &amp; c");
    }

    #[test]
    fn every_reason_has_a_cause_and_a_cure_in_whole_sentences() {
        for reason in Reason::ALL {
            for text in [reason.cause(), reason.cure()] {
                assert!(text.len() > 30 && text.ends_with('.'), "{reason:?}: {text}");
                assert_eq!(text.matches('`').count() % 2, 0, "{reason:?}: {text}");
            }
        }
    }
}
