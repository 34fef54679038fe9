//! `/sign-in`: people sign in with a mail's link or code. GET changes nothing, as mail scanners
//! open links, too.

mod pages;
pub(crate) mod provider;
mod schema;

use axum::http::header::LOCATION;
use axum::http::{HeaderValue, StatusCode};
use galley_api_types::request::RequestBody;
use galley_api_types::session::{SignInRequest, SignInRequestedBody};
use galley_application::operations::sessions::StartedSession;
use galley_application::operations::sign_in;
use galley_application::{Reason, Rejection};
use galley_domain::people::EmailAddress;

use self::schema::{CodeForm, LinkForm};
use crate::extract::body::{FormBody, JsonOrForm};
use crate::extract::sign_in_client::SignInClient;
use crate::respond::language::PageLanguage;
use crate::routes::prelude::*;

/// Get the page to sign in
///
/// Returns an HTML page with a form for an e-mail address.
#[utoipa::path(
    get, path = "/sign-in", operation_id = "getSignInPage",
    responses((status = 200, body = String, content_type = "text/html")),
)]
pub(crate) async fn page(State(app): State<App>, language: PageLanguage) -> Response {
    pages::address(&app, language, StatusCode::OK, "", None)
}

/// Ask for a mail to sign in
///
/// The mail has a link and a code, which work once, for 15 minutes, and only in the browser that
/// has the cookie of the response. The response is the same whether or not the address belongs to a
/// member. To a form, it is an HTML page.
#[utoipa::path(
    post, path = "/sign-in", operation_id = "signIn",
    request_body(content(
        (SignInRequest = "application/json"),
        (SignInRequest = "application/x-www-form-urlencoded"),
    )),
    responses(
        (status = 202, description = "Accepted.", content(
            (SignInRequestedBody = "application/json"),
            (String = "text/html"),
        )),
        (status = 400, description = "The address is invalid.", body = String, content_type = "text/html"),
        (
            status = 403, description = "Another site sent the form, or the connection is not \
                encrypted.",
            body = String, content_type = "text/html"
        ),
        (
            status = 429, description = "The address or the client has tried to sign in too often.",
            body = String, content_type = "text/html"
        ),
    ),
)]
pub(crate) async fn request(
    State(app): State<App>,
    client: SignInClient,
    language: PageLanguage,
    body: JsonOrForm,
) -> Result<Response, Problem> {
    let (email, is_form) = match body {
        JsonOrForm::Json(mut body) => {
            let parsed = SignInRequest::parse(&mut body.fields);
            let Ok(SignInRequest { email }) = parsed else {
                let issues = body.fields.into_issues_and_references().0;
                return Err(Rejection::of_issues(issues).into());
            };
            (email, false)
        }
        JsonOrForm::Form(form) => {
            let text = form.field("email").trim();
            match EmailAddress::parse(text) {
                Ok(email) => (email, true),
                Err(invalid) => {
                    let english = format!("The address {invalid}.");
                    let problem = language.text(english, "Die Adresse ist ungültig.".to_owned());
                    let status = StatusCode::BAD_REQUEST;
                    return Ok(pages::address(&app, language, status, text, Some(&problem)));
                }
            }
        }
    };
    let requested = match client.check_with_limit(&app) {
        Ok(()) => sign_in::request(app.service(), email.clone()).await,
        Err(error) => Err(error),
    };
    let requested = match requested {
        Ok(requested) => requested,
        Err(error) if is_form => {
            return pages::failed_address(&app, language, email.as_str(), error);
        }
        Err(error) => return Err(error.into()),
    };
    let mut response = if is_form {
        pages::code(language, StatusCode::ACCEPTED, None)
    } else {
        response::accepted(&SignInRequestedBody { expires_at: requested.expires_at })
    };
    app.sessions().start_sign_in(&mut response, &requested.browser);
    Ok(response)
}

/// Get the page of a link to sign in
///
/// Returns an HTML page with a button. The page is the target of the link in the mail.
#[utoipa::path(
    get, path = "/sign-in/link", operation_id = "getSignInLinkPage",
    params((
        "code" = Option<String>, Query, pattern = r"^[^\x00]*$", description = "The code of the link",
        example = "kG1p0i3nYcYQ3X1bHc2mZq7n5T0uE8w4rJv9sLdAfBg",
    )),
    responses(
        (status = 200, body = String, content_type = "text/html"),
        (
            status = 403, description = "The link was requested in another browser.",
            body = String, content_type = "text/html"
        ),
        (
            status = 410, description = "The link has expired or was used.",
            body = String, content_type = "text/html"
        ),
    ),
)]
pub(crate) async fn link(
    State(app): State<App>,
    client: SignInClient,
    language: PageLanguage,
    mut query: Query,
) -> Result<Response, Problem> {
    let code = query.text("code").unwrap_or_default();
    query.finish()?;
    match sign_in::find_link(app.service(), &code, client.sign_in.as_deref()).await {
        Ok(user) => Ok(pages::link(language, &user, &code)),
        Err(error) => pages::failed_link(language, error),
    }
}

/// Sign in with a link
///
/// Receives the form of the page, and sets the cookie of the session. The link works once.
#[utoipa::path(
    post, path = "/sign-in/link", operation_id = "useSignInLink",
    request_body(content = LinkForm, content_type = "application/x-www-form-urlencoded"),
    responses(
        (status = 303, description = "Signed in. `Location` is the start page."),
        (
            status = 403, description = "Another site sent the form, or the link was requested in \
                another browser.",
            body = String, content_type = "text/html"
        ),
        (
            status = 410, description = "The link has expired or was used.",
            body = String, content_type = "text/html"
        ),
    ),
)]
pub(crate) async fn use_link(
    State(app): State<App>,
    client: SignInClient,
    language: PageLanguage,
    form: FormBody,
) -> Result<Response, Problem> {
    let code = form.required("code")?;
    let signed_in = async {
        client.check(&app)?;
        let browser = client.browser.clone();
        let cookie = client.sign_in.as_deref();
        sign_in::use_link(app.service(), code, cookie, browser).await
    };
    match signed_in.await {
        Ok(started) => Ok(signed_in_response(&app, &started)),
        Err(error) => pages::failed_link(language, error),
    }
}

/// Sign in with a code
///
/// Receives the form with the code of a mail, and sets the cookie of the session. The code works
/// once, and five attempts are allowed.
#[utoipa::path(
    post, path = "/sign-in/code", operation_id = "useSignInCode",
    request_body(content = CodeForm, content_type = "application/x-www-form-urlencoded"),
    responses(
        (status = 303, description = "Signed in. `Location` is the start page."),
        (
            status = 403, description = "The code is wrong, another site sent the form, or the mail \
                was requested in another browser.",
            body = String, content_type = "text/html"
        ),
        (
            status = 410, description = "The code has expired or was used.",
            body = String, content_type = "text/html"
        ),
        (
            status = 429, description = "Too many wrong codes.",
            body = String, content_type = "text/html"
        ),
    ),
)]
pub(crate) async fn use_code(
    State(app): State<App>,
    client: SignInClient,
    language: PageLanguage,
    form: FormBody,
) -> Result<Response, Problem> {
    let code = form.required("code")?;
    let signed_in = async {
        client.check_with_limit(&app)?;
        let browser = client.browser.clone();
        let cookie = client.sign_in.as_deref();
        sign_in::use_code(app.service(), code, cookie, browser).await
    };
    match signed_in.await {
        Ok(started) => Ok(signed_in_response(&app, &started)),
        Err(error) if error.reason() == Some(Reason::WrongCode) => {
            let problem = pages::detail(language, Reason::WrongCode, &error);
            Ok(pages::code(language, StatusCode::FORBIDDEN, Some(&problem)))
        }
        Err(error) => pages::failed_link(language, error),
    }
}

/// Returns the redirection to the start page, with the cookie of the session.
fn signed_in_response(app: &App, started: &StartedSession) -> Response {
    let mut response = response::no_content();
    *response.status_mut() = StatusCode::SEE_OTHER;
    response.headers_mut().insert(LOCATION, HeaderValue::from_static("/"));
    app.sessions().start(&mut response, &started.cookie);
    response
}
