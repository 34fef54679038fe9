//! The pages of `/sign-in`.

use askama::Template;
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::Response;
use galley_application::{Error, Reason};
use galley_openid_connect::Provider;
use galley_storage::users::User;

use crate::app::App;
use crate::problem::{Problem, texts};
use crate::respond::language::PageLanguage;
use crate::respond::pages;

#[derive(Template)]
#[template(path = "sign_in.html")]
struct AddressPage<'a> {
    language: PageLanguage,
    email: &'a str,
    problem: Option<&'a str>,
    /// The name of the identity provider, if one is registered.
    provider: Option<&'a str>,
}

#[derive(Template)]
#[template(path = "sign_in_code.html")]
struct CodePage<'a> {
    language: PageLanguage,
    problem: Option<&'a str>,
}

#[derive(Template)]
#[template(path = "sign_in_link.html")]
struct LinkPage<'a> {
    language: PageLanguage,
    user: &'a User,
    code: &'a str,
}

#[derive(Template)]
#[template(path = "sign_in_provider.html")]
struct ProviderPage<'a> {
    language: PageLanguage,
    name: &'a str,
    url: &'a str,
}

fn provider_name(app: &App) -> Option<&str> {
    app.limits().identity_provider.as_ref().map(Provider::name)
}

/// Returns the page with the form for an address.
pub(super) fn address(
    app: &App,
    language: PageLanguage,
    status: StatusCode,
    email: &str,
    problem: Option<&str>,
) -> Response {
    let page = AddressPage { language, email, problem, provider: provider_name(app) };
    pages::private(language, status, &page)
}

/// Returns the page that leads to the identity provider. The policy on forms would apply to a
/// redirection, too, and the provider may redirect to further sites.
pub(super) fn provider(app: &App, language: PageLanguage, url: &str) -> Response {
    let name = provider_name(app).unwrap_or_default();
    pages::private(language, StatusCode::OK, &ProviderPage { language, name, url })
}

/// Returns the page with the form for a code.
pub(super) fn code(language: PageLanguage, status: StatusCode, problem: Option<&str>) -> Response {
    pages::private(language, status, &CodePage { language, problem })
}

/// Returns the page with the button of a link.
pub(super) fn link(language: PageLanguage, user: &User, code: &str) -> Response {
    pages::private(language, StatusCode::OK, &LinkPage { language, user, code })
}

/// Returns the page for an address that was rejected.
pub(super) fn failed_address(
    app: &App,
    language: PageLanguage,
    email: &str,
    error: Error,
) -> Result<Response, Problem> {
    let Some(reason) = explained(&error) else { return Err(error.into()) };
    let problem = detail(language, reason, &error);
    let response = address(app, language, texts(reason).status, email, Some(&problem));
    Ok(with_retry_after(response, error))
}

/// Returns the page for a link or a code that can't be used.
pub(super) fn failed_link(language: PageLanguage, error: Error) -> Result<Response, Problem> {
    let Some(reason) = explained(&error) else { return Err(error.into()) };
    Ok(with_retry_after(pages::explanation(language, reason), error))
}

/// Returns the detail of a rejection as a sentence. Details are in English; in German, it is the
/// cause of all rejections for the reason.
pub(super) fn detail(language: PageLanguage, reason: Reason, error: &Error) -> String {
    if language.is_german() {
        let [_, cause, cure] = language.explanation(reason);
        return format!("{cause} {cure}");
    }
    let detail = match error {
        Error::Rejected(rejection) => rejection.detail.as_str(),
        Error::Storage(_) => "",
    };
    let mut letters = detail.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

/// Copies the header `Retry-After` of a rejection.
fn with_retry_after(mut response: Response, error: Error) -> Response {
    if let Some(seconds) = Problem::from(error).headers.get(RETRY_AFTER) {
        response.headers_mut().insert(RETRY_AFTER, seconds.clone());
    }
    response
}

/// Returns the reason of a rejection that a page explains.
fn explained(error: &Error) -> Option<Reason> {
    error.reason().filter(|reason| {
        matches!(
            reason,
            Reason::OtherBrowser
                | Reason::SignInEnded
                | Reason::TooManySignIns
                | Reason::ForeignOrigin
                | Reason::InsecureConnection
                | Reason::IdentityProviderFailed
                | Reason::IdentityRejected
                | Reason::UnverifiedIdentity
                | Reason::UnknownIdentity
                | Reason::UnverifiedMember
        )
    })
}
