//! The HTTP client of small requests to services that the settings name: identity providers, trace
//! collectors, and Galley's own public address.
//!
//! It follows no redirect, and keeps no connection, as its requests are rare.

use std::time::Duration;

use bytes::Bytes;
use http::header::USER_AGENT;
use http::{HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

/// The timeout of a response with its body.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The size limit of a response body. Metadata and keys of identity providers have some tens of
/// KiB.
const SIZE_LIMIT: usize = 1 << 20;

/// The error of one request.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The response with its body took too long.
    #[error("no response within {} seconds", TIMEOUT.as_secs())]
    TimedOut,
    /// The connection could not be opened, or was closed before the response.
    #[error("the connection failed")]
    Connection(#[source] hyper_util::client::legacy::Error),
    /// The body broke off, or is too long.
    #[error("the response could not be read")]
    Body(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// A client for `http` and `https`.
#[derive(Debug, Clone)]
pub struct HttpClient(Client<HttpsConnector<HttpConnector>, Full<Bytes>>);

impl HttpClient {
    /// Creates a client, which reads the system's root certificates.
    pub fn new() -> Self {
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(galley_tls::client())
            .https_or_http()
            .enable_http1()
            .build();
        Self(Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build(connector))
    }

    /// Sends a request, and returns the response with its whole body.
    pub async fn send<B: Into<Bytes>>(
        &self,
        request: Request<B>,
    ) -> Result<Response<Bytes>, RequestError> {
        let mut request = request.map(|body| Full::new(body.into()));
        let user_agent = HeaderValue::from_static(concat!("Galley/", env!("CARGO_PKG_VERSION")));
        request.headers_mut().insert(USER_AGENT, user_agent);
        let exchange = async {
            let response = self.0.request(request).await.map_err(RequestError::Connection)?;
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, SIZE_LIMIT).collect().await;
            let body = body.map_err(RequestError::Body)?.to_bytes();
            Ok(Response::from_parts(parts, body))
        };
        tokio::time::timeout(TIMEOUT, exchange).await.map_err(|_| RequestError::TimedOut)?
    }
}

impl Default for HttpClient {
    fn default() -> Self {
        Self::new()
    }
}
