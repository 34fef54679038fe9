//! `/sign-in/provider`: people sign in with the identity provider, by OpenID Connect.

use galley_application::operations::identity_provider::{self, AuthorizationResponse};

use super::schema::ProviderForm;
use super::{pages, signed_in_response};
use crate::extract::body::FormBody;
use crate::extract::sign_in_client::SignInClient;
use crate::respond::language::PageLanguage;
use crate::routes::prelude::*;

/// Sign in with the identity provider
///
/// Receives the form of the page to sign in. The response is an HTML page that leads to the
/// provider's page, by OpenID Connect Core 1.0 with PKCE (RFC 7636).
#[utoipa::path(
    post, path = "/sign-in/provider", operation_id = "signInWithProvider",
    request_body(content = ProviderForm, content_type = "application/x-www-form-urlencoded"),
    responses(
        (status = 200, body = String, content_type = "text/html"),
        (
            status = 403, description = "Another site sent the form, or the connection is not \
                encrypted.",
            body = String, content_type = "text/html"
        ),
        (status = 404, description = "not_found"),
        (
            status = 429, description = "The client has tried to sign in too often.",
            body = String, content_type = "text/html"
        ),
        (
            status = 502, description = "The identity provider failed.",
            body = String, content_type = "text/html"
        ),
    ),
)]
pub(crate) async fn start(
    State(app): State<App>,
    client: SignInClient,
    language: PageLanguage,
    _: FormBody,
) -> Result<Response, Problem> {
    let started = async {
        client.check_with_limit(&app)?;
        Box::pin(identity_provider::start(app.service())).await
    };
    match started.await {
        Ok(request) => {
            let mut response = pages::provider(&app, language, &request.url);
            app.sessions().start_sign_in(&mut response, &request.browser);
            Ok(response)
        }
        Err(error) => pages::failed_link(language, error),
    }
}

/// Complete the sign-in with the identity provider
///
/// The provider sends the browser here, with the parameters of RFC 6749, section 4.1.2, and
/// RFC 9207. Other parameters are ignored. Sets the cookie of the session.
#[utoipa::path(
    get, path = "/sign-in/callback", operation_id = "completeSignInWithProvider",
    params(
        ("state" = Option<String>, Query, pattern = r"^[^\x00]*$", description = "The state of the request"),
        ("code" = Option<String>, Query, pattern = r"^[^\x00]*$", description = "The code to exchange"),
        ("iss" = Option<String>, Query, pattern = r"^[^\x00]*$", description = "The issuer"),
        ("error" = Option<String>, Query, pattern = r"^[^\x00]*$", description = "The reason why the \
            provider declined"),
    ),
    responses(
        (status = 303, description = "Signed in. `Location` is the start page."),
        (
            status = 403, description = "The provider declined, its statement is not valid, no \
                member has the address, or the sign-in was started in another browser.",
            body = String, content_type = "text/html"
        ),
        (status = 404, description = "not_found"),
        (
            status = 410, description = "The sign-in has expired or was completed.",
            body = String, content_type = "text/html"
        ),
        (
            status = 502, description = "The identity provider failed.",
            body = String, content_type = "text/html"
        ),
    ),
)]
pub(crate) async fn complete(
    State(app): State<App>,
    client: SignInClient,
    language: PageLanguage,
    mut query: Query,
) -> Result<Response, Problem> {
    let callback = AuthorizationResponse {
        state: query.text("state").unwrap_or_default(),
        code: query.text("code"),
        issuer: query.text("iss"),
        error: query.text("error"),
    };
    query.finish()?;
    let signed_in = async {
        app.sessions().require_allowed()?;
        let (cookie, browser) = (client.sign_in.as_deref(), client.browser.clone());
        Box::pin(identity_provider::complete(app.service(), callback, cookie, browser)).await
    };
    match signed_in.await {
        Ok(started) => Ok(signed_in_response(&app, &started)),
        Err(error) => pages::failed_link(language, error),
    }
}
