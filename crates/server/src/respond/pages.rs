//! HTML pages with one layout and one style, without scripts and external resources.

use std::sync::LazyLock;

use askama::Template;
use axum::body::Body;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_LANGUAGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY,
};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use galley_application::Reason;
use sha2::{Digest, Sha256};

use crate::problem::texts;
use crate::respond::language::PageLanguage;
use crate::respond::response::{self, StaticFile};

/// The style sheet of every page.
pub(crate) const STYLE: &str =
    concat!(include_str!("../../templates/colors.css"), include_str!("../../templates/page.css"));

const HTML: &str = "text/html; charset=utf-8";

/// Returns a content security policy that allows this style only, and forms to `form_action`.
fn content_security_policy(form_action: &str) -> HeaderValue {
    let hash = STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; \
         form-action {form_action}; frame-ancestors 'none'"
    );
    HeaderValue::try_from(policy).expect("base 64 is ASCII")
}

fn render(page: &impl Template) -> String {
    page.render().expect("a page is written to memory")
}

/// Returns a public page, the same for every client.
pub(crate) fn public(page: &impl Template) -> Response {
    static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| content_security_policy("'none'"));
    let mut response = response::file(&StaticFile::new(HTML, render(page).into_bytes()));
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, POLICY.clone());
    response
}

/// A page with a message, after which nothing is to be done here.
#[derive(Template)]
#[template(path = "message.html")]
pub(crate) struct MessagePage {
    pub(crate) language: PageLanguage,
    pub(crate) title: &'static str,
    pub(crate) cause: &'static str,
    pub(crate) cure: &'static str,
    /// True if a new mail to sign in helps.
    pub(crate) asks_again: bool,
}

/// Returns a page that explains a rejection.
pub(crate) fn explanation(language: PageLanguage, reason: Reason) -> Response {
    let [title, cause, cure] = language.explanation(reason);
    let asks_again = matches!(
        reason,
        Reason::OtherBrowser
            | Reason::SignInEnded
            | Reason::SignInRequired
            | Reason::IdentityProviderFailed
            | Reason::IdentityRejected
            | Reason::UnverifiedIdentity
            | Reason::UnknownIdentity
            | Reason::UnverifiedMember
    );
    private(
        language,
        texts(reason).status,
        &MessagePage { language, title, cause, cure, asks_again },
    )
}

/// Returns a page with private data: never cached, and with a form that is submitted to this
/// service. Without a referrer, a form would state no origin.
pub(crate) fn private(
    language: PageLanguage,
    status: StatusCode,
    page: &impl Template,
) -> Response {
    static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| content_security_policy("'self'"));
    let mut response = Response::new(Body::from(render(page)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(HTML));
    headers.insert(CONTENT_LANGUAGE, language.header());
    headers.insert(CONTENT_SECURITY_POLICY, POLICY.clone());
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}
