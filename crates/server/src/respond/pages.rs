//! Pages for people: one frame, one style, nothing loaded from anywhere, no script.

use std::sync::LazyLock;

use askama::Template;
use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::respond::response::{self, File};

/// Of every page.
pub(crate) const STYLE: &str =
    concat!(include_str!("../../templates/colors.css"), include_str!("../../templates/page.css"));

const HTML: &str = "text/html; charset=utf-8";

/// Nothing but that style, and forms only where `form-action` says so.
fn policy(form_action: &str) -> HeaderValue {
    let hash = STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; \
         form-action {form_action}; frame-ancestors 'none'"
    );
    HeaderValue::try_from(policy).expect("base 64 is ASCII")
}

fn rendered(page: &impl Template) -> String {
    page.render().expect("a page is written to memory")
}

/// A page that is the same for everybody.
pub(crate) fn public(page: &impl Template) -> Response {
    static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| policy("'none'"));
    let mut response = response::file(&File::new(HTML, rendered(page).into_bytes()));
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, POLICY.clone());
    response
}

/// A page for one person's eyes: kept nowhere, told to nobody, with a form that is sent back here.
pub(crate) fn private(status: StatusCode, page: &impl Template) -> Response {
    static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| policy("'self'"));
    let mut response = Response::new(Body::from(rendered(page)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(HTML));
    headers.insert(CONTENT_SECURITY_POLICY, POLICY.clone());
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}
