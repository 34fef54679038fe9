//! Sessions of browsers: their cookies, and the defence against requests of other sites.

use std::net::IpAddr;

use axum::http::header::{COOKIE, HeaderName, ORIGIN, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::response::Response;
use galley_application::{Error, Reason, Rejection};
use galley_domain::session::SIGN_IN_LIFETIME;
use galley_domain::{Invalid, WorkspaceId};
use url::{Host, Url};

/// The header that names the workspace of a request with a session.
pub(crate) const WORKSPACE: HeaderName = HeaderName::from_static("galley-workspace");

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The time for which a browser keeps the cookie of a session: the maximum that browsers allow. The
/// session itself expires earlier.
const COOKIE_SECONDS: u64 = 400 * 24 * 60 * 60;

/// The properties of sessions that follow from the service's public URL.
#[derive(Debug)]
pub(crate) struct SessionSettings {
    /// The name of a session's cookie.
    cookie: &'static str,
    /// The name of the cookie that binds a sign-in to its browser.
    sign_in_cookie: &'static str,
    is_secure: bool,
    /// The origin of the service's pages.
    origin: Option<String>,
    /// True if people may sign in.
    pub(crate) is_allowed: bool,
}

impl SessionSettings {
    /// Returns the settings for a public URL. Without https, cookies can be read on the way, so
    /// only a loopback address is allowed, unless the operator allows every address.
    pub(crate) fn new(public_url: &str, allows_plain_http: bool) -> Self {
        let url = Url::parse(public_url).ok();
        let is_secure = url.as_ref().is_some_and(|url| url.scheme() == "https");
        let is_loopback = url.as_ref().is_none_or(|url| match url.host() {
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            None => false,
        });
        let (cookie, sign_in_cookie) = if is_secure {
            ("__Host-galley-session", "__Host-galley-sign-in")
        } else {
            ("galley-session", "galley-sign-in")
        };
        Self {
            cookie,
            sign_in_cookie,
            is_secure,
            origin: url.map(|url| url.origin().ascii_serialization()),
            is_allowed: is_secure || is_loopback || allows_plain_http,
        }
    }

    /// Returns true if a client's address is that of a proxy in front of the service: it encrypts
    /// the connections of all clients, and is not among the trusted ones that state the addresses.
    pub(crate) fn is_proxy(&self, client: Option<IpAddr>) -> bool {
        self.is_secure && client.is_some_and(|address| address.is_loopback())
    }

    /// Rejects sign-ins over a connection that others can read.
    pub(crate) fn require_allowed(&self) -> Result<(), Error> {
        if self.is_allowed {
            return Ok(());
        }
        let detail = "the service's public URL is neither https nor a loopback address";
        Err(Rejection::new(Reason::InsecureConnection, detail).into())
    }

    /// Returns the value of the session's cookie. Several cookies of the name may come from another
    /// site of the same host, so they count as none.
    pub(crate) fn session<'h>(&self, headers: &'h HeaderMap) -> Option<&'h str> {
        cookie(headers, self.cookie)
    }

    /// Returns the value of the cookie that binds a sign-in to this browser.
    pub(crate) fn sign_in<'h>(&self, headers: &'h HeaderMap) -> Option<&'h str> {
        cookie(headers, self.sign_in_cookie)
    }

    /// Sets the cookie of a new session, and deletes that of the sign-in.
    pub(crate) fn start(&self, response: &mut Response, value: &str) {
        self.set(response, self.cookie, value, COOKIE_SECONDS);
        self.set(response, self.sign_in_cookie, "", 0);
    }

    /// Sets the cookie that binds a sign-in to this browser.
    pub(crate) fn start_sign_in(&self, response: &mut Response, value: &str) {
        self.set(response, self.sign_in_cookie, value, SIGN_IN_LIFETIME.as_secs());
    }

    /// Deletes the cookie of the session.
    pub(crate) fn end(&self, response: &mut Response) {
        self.set(response, self.cookie, "", 0);
    }

    fn set(&self, response: &mut Response, name: &str, value: &str, seconds: u64) {
        let secure = if self.is_secure { "; Secure" } else { "" };
        let text =
            format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}");
        let text = HeaderValue::try_from(text).expect("names and codes are ASCII");
        response.headers_mut().append(SET_COOKIE, text);
    }

    /// Returns true if a page of this service sent the request, false if another page did, and
    /// `None` if the browser doesn't tell.
    pub(crate) fn is_same_origin(&self, headers: &HeaderMap) -> Option<bool> {
        if let Some(site) = headers.get(SEC_FETCH_SITE) {
            return Some(site == "same-origin");
        }
        let origin = headers.get(ORIGIN)?;
        Some(self.origin.as_deref().is_some_and(|own| origin == own))
    }

    /// Returns true if a request that the cookie authenticates comes from a page of this service. A
    /// client that tells no origin is trusted with a GET if it sends a header that pages of other
    /// origins can't send.
    pub(crate) fn is_own_request(&self, method: &Method, headers: &HeaderMap) -> bool {
        self.is_same_origin(headers).unwrap_or_else(|| {
            matches!(*method, Method::GET | Method::HEAD) && headers.contains_key(WORKSPACE)
        })
    }

    /// Rejects a request that the cookie authenticates, unless a page of this service sent it.
    pub(crate) fn require_own_request(&self, parts: &Parts) -> Result<(), Error> {
        if self.is_own_request(&parts.method, &parts.headers) {
            return Ok(());
        }
        Err(foreign("a page of another origin can't use the session"))
    }
}

/// Returns the rejection of a request of another origin.
pub(crate) fn foreign(detail: &str) -> Error {
    Rejection::new(Reason::ForeignOrigin, detail).into()
}

/// Returns the value of a cookie that is sent once.
fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    // Cookies of other programs on the host may have any bytes.
    let pairs =
        headers.get_all(COOKIE).iter().flat_map(|value| value.as_bytes().split(|b| *b == b';'));
    let pairs = pairs.filter_map(|pair| str::from_utf8(pair).ok());
    let mut values = pairs.filter_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='));
    let (value, None) = (values.next()?, values.next()) else { return None };
    Some(value).filter(|value| !value.is_empty())
}

/// Returns the workspace that a request with a session names.
pub(crate) fn workspace(headers: &HeaderMap) -> Result<Option<WorkspaceId>, Error> {
    let mut values = headers.get_all(WORKSPACE).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => {
            let id = value.to_str().ok().and_then(|text| text.parse().ok());
            id.map(Some).ok_or_else(|| workspace_header("must be the identifier of a workspace"))
        }
        _ => Err(workspace_header("must be sent once")),
    }
}

/// Returns the rejection of the header that names the workspace.
pub(crate) fn workspace_header(message: &str) -> Error {
    let invalid = Invalid::new("invalid_header", message);
    Rejection::of_field("Galley-Workspace", &invalid).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::try_from(*value).unwrap());
        }
        headers
    }

    #[test]
    fn sessions_need_https_or_a_loopback_address() {
        for (url, is_allowed, is_secure) in [
            ("https://galley.example.org", true, true),
            ("http://galley.example.org", false, false),
            ("http://127.0.0.1:8080", true, false),
            ("http://[::1]:8080", true, false),
            ("http://localhost:8080", true, false),
            ("http://galley.localhost", true, false),
            ("http://localhost.example.org", false, false),
            ("http://192.0.2.1", false, false),
        ] {
            let settings = SessionSettings::new(url, false);
            assert_eq!((settings.is_allowed, settings.is_secure), (is_allowed, is_secure), "{url}");
            assert_eq!(settings.cookie.starts_with("__Host-"), is_secure);
            assert!(SessionSettings::new(url, true).is_allowed);
        }
    }

    #[test]
    fn a_cookie_is_read_once() {
        let settings = SessionSettings::new("http://localhost", false);
        for (pairs, value) in [
            (vec![("cookie", "galley-session=abc")], Some("abc")),
            (vec![("cookie", "a=b; galley-session=abc; c=d")], Some("abc")),
            (vec![("cookie", "a=b"), ("cookie", "galley-session=abc")], Some("abc")),
            (vec![("cookie", "galley-session=abc; galley-session=def")], None),
            (vec![("cookie", "galley-session=abc"), ("cookie", "galley-session=abc")], None),
            (vec![("cookie", "xgalley-session=abc; galley-session-2=d")], None),
            (vec![("cookie", "other=é; galley-session=abc")], Some("abc")),
            (vec![("cookie", "galley-session=")], None),
            (vec![], None),
        ] {
            assert_eq!(settings.session(&headers(&pairs)), value, "{pairs:?}");
        }
    }

    #[test]
    fn requests_of_other_origins_are_recognised() {
        let settings = SessionSettings::new("https://galley.example.org/base", false);
        let own = ("origin", "https://galley.example.org");
        for (method, pairs, is_own) in [
            ("GET", vec![("sec-fetch-site", "same-origin")], true),
            ("GET", vec![("sec-fetch-site", "same-site"), ("galley-workspace", "x")], false),
            ("GET", vec![("sec-fetch-site", "cross-site"), own], false),
            ("GET", vec![("sec-fetch-site", "none")], false),
            ("PUT", vec![own], true),
            ("PUT", vec![("origin", "https://galley.example.org:444")], false),
            ("PUT", vec![("origin", "http://galley.example.org")], false),
            ("GET", vec![("origin", "null"), ("galley-workspace", "x")], false),
            ("GET", vec![("galley-workspace", "x")], true),
            ("PUT", vec![("galley-workspace", "x")], false),
            ("GET", vec![], false),
        ] {
            let method = method.parse().unwrap();
            assert_eq!(settings.is_own_request(&method, &headers(&pairs)), is_own, "{pairs:?}");
        }
    }
}
