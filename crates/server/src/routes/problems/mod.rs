//! `/problems`: a page for each reason, to which the `type` of a problem links.

use askama::Template;
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::StatusCode;
use axum::response::Response;
use galley_application::{Error, Reason};

use crate::problem::{Problem, ReasonTexts, texts};
use crate::respond::pages;

#[derive(Template)]
#[template(path = "problem_list.html")]
struct ProblemListPage {
    reasons: Vec<(&'static str, ReasonTexts)>,
}

#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemPageRequest {
    reason: &'static str,
    title: &'static str,
    status: String,
    /// The cause, as HTML.
    cause: String,
    /// The cure, as HTML.
    cure: String,
}

/// List the reasons of problems
///
/// Returns an HTML page.
#[utoipa::path(
    get,
    path = "/problems",
    operation_id = "listProblems",
    responses((status = 200, body = String, content_type = "text/html")),
)]
pub(crate) async fn list() -> Response {
    let named = |reason: &Reason| (reason.as_str(), texts(*reason));
    pages::public(&ProblemListPage { reasons: Reason::ALL.iter().map(named).collect() })
}

/// Get the explanation of a problem
///
/// Returns an HTML page with the cause and the cure. The `type` of a problem links to it.
#[utoipa::path(
    get,
    path = "/problems/{reason}",
    operation_id = "getProblem",
    params(("reason" = String, Path, description = "A problem's `reason`", example = "validation")),
    responses((status = 200, body = String, content_type = "text/html")),
)]
pub(crate) async fn page(name: Result<Path<String>, PathRejection>) -> Result<Response, Problem> {
    let Path(name) = name.map_err(|_| Error::not_found())?;
    let reason = Reason::ALL.iter().find(|reason| reason.as_str() == name);
    let reason = *reason.ok_or_else(Error::not_found)?;
    let texts = texts(reason);
    Ok(pages::public(&ProblemPageRequest {
        reason: reason.as_str(),
        title: texts.title,
        status: status_text(texts.status),
        cause: to_html(texts.cause),
        cure: to_html(texts.cure),
    }))
}

fn status_text(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(words) => format!("{} {words}", status.as_u16()),
        None => status.as_u16().to_string(),
    }
}

/// Converts a text to HTML. The text between backticks becomes code.
fn to_html(text: &str) -> String {
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
        assert_eq!(to_html("a < b, `<b>` & c"), "a &lt; b, <code>&lt;b&gt;</code> &amp; c");
    }

    #[test]
    fn every_reason_has_a_cause_and_a_cure_in_whole_sentences() {
        for reason in Reason::ALL {
            let texts = texts(*reason);
            for text in [texts.cause, texts.cure] {
                assert!(text.len() > 30 && text.ends_with('.'), "{reason:?}: {text}");
                assert_eq!(text.matches('`').count() % 2, 0, "{reason:?}: {text}");
            }
        }
    }
}
