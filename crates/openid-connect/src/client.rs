//! The HTTP client of requests to the provider.

use std::pin::Pin;

use galley_http_client::{HttpClient, RequestError};
use openidconnect::{AsyncHttpClient, HttpRequest, HttpResponse};

/// A client that follows no redirect: only the provider's own responses count.
#[derive(Debug)]
pub(crate) struct ProviderClient(HttpClient);

impl ProviderClient {
    pub(crate) fn new() -> Self {
        Self(HttpClient::new())
    }

    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, RequestError> {
        Ok(self.0.send(request).await?.map(|body| body.to_vec()))
    }
}

impl<'c> AsyncHttpClient<'c> for ProviderClient {
    type Error = RequestError;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, RequestError>> + Send + 'c>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(self.send(request))
    }
}
