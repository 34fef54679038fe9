//! The browser of a person who signs in.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::header::USER_AGENT;
use axum::http::request::Parts;
use galley_application::Error;
use galley_application::operations::sessions::Browser;

use crate::app::App;
use crate::describe::{HandlerArgument, HandlerFacts};
use crate::extract::request_origin;
use crate::resources::sessions::foreign;

/// The browser of a person who signs in.
#[derive(Debug)]
pub(crate) struct SignInClient {
    pub(crate) browser: Browser,
    /// The value of the cookie that binds a sign-in to the browser.
    pub(crate) sign_in: Option<String>,
    /// True if a page of another origin sent the request.
    is_foreign: bool,
}

impl SignInClient {
    /// Rejects a form that a page of another origin has sent.
    pub(crate) fn require_own_page(&self) -> Result<(), Error> {
        if self.is_foreign {
            return Err(foreign("the form was sent by a page of another origin"));
        }
        Ok(())
    }

    /// Rejects sign-ins over http, and by pages of other origins.
    pub(crate) fn check(&self, app: &App) -> Result<(), Error> {
        app.sessions().require_allowed()?;
        self.require_own_page()
    }

    /// Like [`SignInClient::check`], and beyond the client's limit. If the clients can't be told
    /// apart, as one proxy sends their requests, only the limits of addresses apply.
    pub(crate) fn check_with_limit(&self, app: &App) -> Result<(), Error> {
        self.check(app)?;
        let client = self.browser.request.remote_address;
        if app.sessions().is_proxy(client) { Ok(()) } else { app.sign_in_limit().check(client) }
    }
}

impl FromRequestParts<App> for SignInClient {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Infallible> {
        let (headers, sessions) = (&parts.headers, app.sessions());
        let user_agent = headers.get(USER_AGENT).and_then(|value| value.to_str().ok());
        let browser = Browser {
            request: request_origin::origin(parts, app),
            user_agent: user_agent.map(ToOwned::to_owned),
            session: sessions.session(headers).map(ToOwned::to_owned),
        };
        let sign_in = sessions.sign_in(headers).map(ToOwned::to_owned);
        Ok(Self { browser, sign_in, is_foreign: sessions.is_same_origin(headers) == Some(false) })
    }
}

impl HandlerArgument for SignInClient {
    fn add_facts(facts: &mut HandlerFacts) {
        facts.signs_in = true;
    }
}
