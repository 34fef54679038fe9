//! The HTTP client of requests to the provider.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http::header::USER_AGENT;
use http::{HeaderValue, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use openidconnect::{AsyncHttpClient, HttpRequest, HttpResponse};

/// The timeout of a response with its body.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The size limit of a response body. Metadata and keys of providers have some tens of KiB.
const SIZE_LIMIT: usize = 1 << 20;

/// The error of one request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    #[error("no response within {} seconds", TIMEOUT.as_secs())]
    TimedOut,
    #[error("the connection failed")]
    Connection(#[source] hyper_util::client::legacy::Error),
    #[error("the response could not be read")]
    Body(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// A client that follows no redirect: only the provider's own responses count.
#[derive(Debug)]
pub(crate) struct HttpClient(Client<HttpsConnector<HttpConnector>, Full<Bytes>>);

impl HttpClient {
    pub(crate) fn new() -> Self {
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(galley_tls::client())
            .https_or_http()
            .enable_http1()
            .build();
        // Sign-ins are rare, so no connection is kept.
        Self(Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build(connector))
    }

    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, RequestError> {
        let mut request = request.map(|body| Full::new(Bytes::from(body)));
        let user_agent = HeaderValue::from_static(concat!("Galley/", env!("CARGO_PKG_VERSION")));
        request.headers_mut().insert(USER_AGENT, user_agent);
        let exchange = async {
            let response = self.0.request(request).await.map_err(RequestError::Connection)?;
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, SIZE_LIMIT).collect().await;
            let body = body.map_err(RequestError::Body)?.to_bytes().to_vec();
            Ok(Response::from_parts(parts, body))
        };
        tokio::time::timeout(TIMEOUT, exchange).await.map_err(|_| RequestError::TimedOut)?
    }
}

impl<'c> AsyncHttpClient<'c> for HttpClient {
    type Error = RequestError;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, RequestError>> + Send + 'c>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(self.send(request))
    }
}
