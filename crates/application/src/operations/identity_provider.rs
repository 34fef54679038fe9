//! Sign-in with the identity provider that the operator has registered.
//!
//! The request is a row of the same table as requests for a mail, bound to the browser by the same
//! cookie. Its nonce and PKCE verifier are derived from that cookie, so no secret is stored, and
//! any node can complete the request.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use galley_domain::access_token;
use galley_domain::people::EmailAddress;
use galley_domain::session::{SIGN_IN_LIFETIME, SignInMethod};
use galley_openid_connect::{AuthorizationRequest, Error as ProviderError, Identity, Provider};
use galley_storage::sign_ins::{self, SignIn};
use galley_storage::{IdPage, Tx, WriteTx, members, users};

use crate::error::Error;
use crate::operations::sessions::{self, Browser, StartedSession};
use crate::rejection::{Reason, Rejection};
use crate::service::Service;

/// A request that the provider's page continues.
#[derive(Debug, Clone)]
pub struct StartedRequest {
    /// The URL of the provider's page.
    pub url: String,
    /// The value of the cookie that binds the request to the browser.
    pub browser: String,
}

/// The parameters with which the provider sends the browser back (RFC 6749 and RFC 9207).
#[derive(Debug, Clone, Default)]
pub struct AuthorizationResponse {
    /// The state of the request.
    pub state: String,
    /// The code to exchange.
    pub code: Option<String>,
    /// The issuer, if the provider states it.
    pub issuer: Option<String>,
    /// The error code, if the user or the provider has declined.
    pub error: Option<String>,
}

/// Starts a request.
pub async fn start(service: &Service) -> Result<StartedRequest, Error> {
    let provider = provider(service)?;
    let environment = service.environment();
    let (browser, state) = (environment.new_code(), environment.new_code());
    let request = authorization_request(service, &browser, &state);
    let url = provider.authorization_url(&request).await.map_err(failed)?;
    let now = environment.now();
    let sign_in = SignIn {
        link_hash: access_token::hash(&state).to_vec(),
        browser_hash: Some(access_token::hash(&browser).to_vec()),
        code_hash: None,
        email_key: String::new(),
        user: None,
        wrong_codes: 0,
        created_at: now,
        expires_at: now.later(SIGN_IN_LIFETIME),
    };
    let insert =
        async move |tx: &WriteTx<'_>| Ok::<_, Error>(sign_ins::insert(tx, &sign_in).await?);
    service.database().write("identity_provider.start", insert).await?;
    Ok(StartedRequest { url: url.into(), browser })
}

/// Completes a request, once. Signs in the user with the address that the provider has verified.
pub async fn complete(
    service: &Service,
    callback: AuthorizationResponse,
    browser: Option<&str>,
    client: Browser,
) -> Result<StartedSession, Error> {
    let provider = provider(service)?;
    let Some(browser) = browser else {
        let detail = "the sign-in was started in another browser";
        return Err(Rejection::new(Reason::OtherBrowser, detail).into());
    };
    // The request ends before its code is exchanged, so that no failure lets it be repeated.
    end_request(service, &callback.state, browser).await?;
    if callback.issuer.is_some_and(|issuer| issuer != provider.issuer()) {
        return Err(rejected("the response is by another provider"));
    }
    if let Some(error) = callback.error {
        // The text comes from the address of the page, so no page shows it.
        tracing::debug!(error, "the identity provider declined a sign-in");
        return Err(rejected("the sign-in was declined"));
    }
    let code = callback.code.ok_or_else(|| rejected("the response has no code"))?;
    let request = authorization_request(service, browser, &callback.state);
    let now = service.environment().now();
    let identity = Box::pin(provider.identify(code, &request, now)).await.map_err(failed)?;
    start_session(service, identity, client).await
}

/// Ends a request, which one of several concurrent callbacks does.
async fn end_request(service: &Service, state: &str, browser: &str) -> Result<(), Error> {
    let (state, browser) = (access_token::hash(state), access_token::hash(browser));
    let now = service.environment().now();
    let find = async move |tx: &Tx<'_>| Ok::<_, Error>(sign_ins::find_by_link(tx, &state).await?);
    // A read comes first, so that random states do not occupy the writer.
    let found = service.database().read("identity_provider.find_request", find).await?;
    // The link of a mail is no state, though both are codes of the same table.
    let found = found.filter(|one| one.expires_at > now && one.is_of_identity_provider());
    if found.ok_or_else(ended)?.browser_hash.as_deref() != Some(browser.as_slice()) {
        let detail = "the sign-in was started in another browser";
        return Err(Rejection::new(Reason::OtherBrowser, detail).into());
    }
    let end = async move |tx: &WriteTx<'_>| {
        if sign_ins::end(tx, &state, now).await? { Ok(()) } else { Err(ended()) }
    };
    service.database().write("identity_provider.end_request", end).await
}

async fn start_session(
    service: &Service,
    identity: Identity,
    client: Browser,
) -> Result<StartedSession, Error> {
    let unverified = || {
        let detail = "the provider has not verified the address of the account";
        Error::from(Rejection::new(Reason::UnverifiedIdentity, detail))
    };
    let email = identity.email.filter(|_| identity.is_email_verified).ok_or_else(unverified)?;
    let email = EmailAddress::parse(&email).map_err(|_| unverified())?;
    let environment = service.environment().clone();
    let write = async move |tx: &WriteTx<'_>| {
        let unknown = || {
            let detail = "no member has the address of the account";
            Error::from(Rejection::new(Reason::UnknownIdentity, detail))
        };
        let user = users::find_by_email(tx, &email).await?.ok_or_else(unknown)?;
        if members::of_user(tx, user.id, &IdPage::first(1)).await?.is_empty() {
            return Err(unknown());
        }
        if !user.has_verified_email() {
            let detail = "the member's address was never proved by mail";
            return Err(Rejection::new(Reason::UnverifiedMember, detail).into());
        }
        let method = SignInMethod::OpenIdConnect;
        sessions::start(tx, &environment, &user, method, None, &client).await
    };
    service.database().write("identity_provider.start_session", write).await
}

fn provider(service: &Service) -> Result<&Provider, Error> {
    service.settings().identity_provider.as_ref().ok_or_else(Error::not_found)
}

/// Derives the secrets of a request from its cookie and its state.
fn authorization_request(service: &Service, browser: &str, state: &str) -> AuthorizationRequest {
    let derive = |purpose: &[u8]| {
        let parts = [purpose, browser.as_bytes(), state.as_bytes()];
        BASE64_URL_SAFE_NO_PAD.encode(service.key().fingerprint(&parts))
    };
    AuthorizationRequest {
        state: state.to_owned(),
        nonce: derive(b"nonce of OpenID Connect"),
        verifier: derive(b"PKCE verifier of OpenID Connect"),
    }
}

fn failed(error: ProviderError) -> Error {
    tracing::warn!(%error, "a sign-in with the identity provider failed");
    match error {
        ProviderError::Unavailable(_) => {
            let detail = "the identity provider does not respond as expected";
            Rejection::new(Reason::IdentityProviderFailed, detail).into()
        }
        ProviderError::Rejected(_) => rejected("the provider's statement is not valid"),
    }
}

fn rejected(detail: &'static str) -> Error {
    Rejection::new(Reason::IdentityRejected, detail).into()
}

fn ended() -> Error {
    Rejection::new(Reason::SignInEnded, "the sign-in has expired or was used").into()
}
