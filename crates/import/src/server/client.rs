//! An HTTP client of the API, with retries.

use std::collections::HashSet;
use std::future::Future;
use std::time::Duration;

use anyhow::{Context, bail};
use backon::{ExponentialBuilder, Retryable};
use bytes::Bytes;
use galley_application::Environment;
use http::header::{
    AUTHORIZATION, CONTENT_TYPE, ETAG, HeaderValue, IF_MATCH, RETRY_AFTER, USER_AGENT,
};
use http::{Method, Request, StatusCode, response};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use crate::destination::WriteFailure;
use crate::root_cause::root_cause;

/// The number of concurrent requests.
pub(crate) const CONCURRENCY: usize = 4;

/// The timeout of a response.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(1);

/// The bytes a second of the slowest upload that is waited for.
const SLOWEST_UPLOAD: u64 = 64 * 1024;

/// The size limit of a response body. A page of a list has at most this size by the server's
/// default; all other responses are far smaller.
const RESPONSE_SIZE_LIMIT: usize = 64 << 20;

/// The maximum length of a list: ten times the size that a workspace is designed for.
const LIST_LENGTH_LIMIT: usize = 10_000_000;

/// The longest `Retry-After` that a request honours. A limit of requests per minute resets within
/// this time.
const RETRY_AFTER_LIMIT: Duration = Duration::from_mins(1);

/// The maximum number of retries after a lost or retryable response: about a minute and a half in
/// total.
const RETRY_LIMIT: usize = 12;

/// A client of a server's API.
#[derive(Debug)]
pub(crate) struct ApiClient {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    token: HeaderValue,
    /// The server's address without a trailing slash.
    base: String,
    environment: Environment,
}

/// The error of one attempt of a request.
#[derive(Debug)]
enum RequestFailure {
    /// A retry may succeed, after the server's `Retry-After` if it sent one.
    Retryable(anyhow::Error, Option<Duration>),
    Final(WriteFailure),
}

#[derive(Debug, Deserialize)]
struct RemoteProblem {
    detail: String,
    #[serde(default)]
    issues: Vec<RemoteIssue>,
}

#[derive(Debug, Deserialize)]
struct RemoteIssue {
    #[serde(default)]
    path: Vec<Value>,
    message: String,
}

impl ApiClient {
    pub(crate) fn new(url: &str, token: &str) -> anyhow::Result<Self> {
        let base = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let base = base.with_context(|| {
            format!("--url {url:?} is not the URL of a server, such as https://galley.example.org")
        })?;
        if !base.username().is_empty() || base.password().is_some() || base.query().is_some() {
            bail!("--url must be the server's URL only: set the token with --token");
        }
        let mut token = HeaderValue::try_from(format!("Bearer {}", token.trim()))
            .context("--token contains characters that tokens never have")?;
        token.set_sensitive(true);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(galley_tls::client())
            .https_or_http()
            .enable_http1()
            .build();
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_max_idle_per_host(CONCURRENCY)
            .build(connector);
        Ok(Self {
            client,
            token,
            base: base.as_str().trim_end_matches('/').to_owned(),
            environment: Environment::default(),
        })
    }

    /// Returns the server's address without a trailing slash.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// Sends a request once.
    async fn request<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        key: Option<&str>,
    ) -> Result<T, RequestFailure> {
        self.request_if(method, path, body, key, None).await.map(|(answer, _)| answer)
    }

    /// Sends a request once, with an `If-Match` precondition. Returns the response's entity tag as
    /// well.
    async fn request_if<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        key: Option<&str>,
        version: Option<&str>,
    ) -> Result<(T, String), RequestFailure> {
        let body = body.map(|body| ("application/json", Bytes::from(body.to_string())));
        self.send(method, path, body, key, version).await
    }

    /// Sends a request with a body of any type.
    async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<(&'static str, Bytes)>,
        key: Option<&str>,
        version: Option<&str>,
    ) -> Result<(T, String), RequestFailure> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header(AUTHORIZATION, &self.token)
            .header(USER_AGENT, concat!("galley-import/", env!("CARGO_PKG_VERSION")));
        if let Some((media_type, _)) = &body {
            request = request.header(CONTENT_TYPE, *media_type);
        }
        if let Some(version) = version {
            request = request.header(IF_MATCH, version);
        }
        request = match key {
            Some(key) => request.header("idempotency-key", key),
            // The representation in the response shows if the change was applied.
            None => request.header("prefer", "return=representation"),
        };
        let body = body.map(|(_, bytes)| bytes).unwrap_or_default();
        let limit = RESPONSE_TIMEOUT + Duration::from_secs(body.len() as u64 / SLOWEST_UPLOAD);
        let failed = |error: http::Error| RequestFailure::Final(WriteFailure::Failed(error.into()));
        let request = request.body(Full::new(body)).map_err(failed)?;
        let (head, bytes) = tokio::time::timeout(limit, self.exchange(request))
            .await
            .map_err(|_| self.lost("the response timed out"))??;
        if !head.status.is_success() {
            return Err(self.rejection(&head, &bytes));
        }
        let version = head.headers.get(ETAG).and_then(|tag| tag.to_str().ok());
        // Changes are answered without a body.
        let text = if bytes.is_empty() { b"null" } else { &bytes[..] };
        let answer = serde_json::from_slice(text).map_err(|_| self.unexpected_response())?;
        Ok((answer, version.unwrap_or_default().to_owned()))
    }

    async fn exchange(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<(response::Parts, Bytes), RequestFailure> {
        let response = self.client.request(request).await;
        let (head, body) = response.map_err(|error| self.lost(&root_cause(&error)))?.into_parts();
        match Limited::new(body, RESPONSE_SIZE_LIMIT).collect().await {
            Ok(body) => Ok((head, body.to_bytes())),
            Err(error) if error.is::<LengthLimitError>() => Err(self.unexpected_response()),
            Err(error) => Err(self.lost(&root_cause(&*error))),
        }
    }

    fn lost(&self, reason: &str) -> RequestFailure {
        RequestFailure::Retryable(anyhow::anyhow!("{} can't be reached: {reason}", self.base), None)
    }

    /// Returns the failure for a response that is no success.
    fn rejection(&self, head: &response::Parts, bytes: &[u8]) -> RequestFailure {
        let status = head.status;
        let message = serde_json::from_slice::<RemoteProblem>(bytes).map_or_else(
            |_| {
                format!("it responded with {status}: check that the URL is that of a Galley server")
            },
            |problem| problem.to_message(),
        );
        let failed = || anyhow::anyhow!("{}: {message}", self.base);
        match status {
            StatusCode::REQUEST_TIMEOUT
            | StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => {
                let after = head.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
                let after = after.and_then(|text| text.parse().ok()).map(Duration::from_secs);
                RequestFailure::Retryable(failed(), after)
            }
            StatusCode::BAD_REQUEST
            | StatusCode::NOT_FOUND
            | StatusCode::CONFLICT
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::UNPROCESSABLE_ENTITY => {
                RequestFailure::Final(WriteFailure::Rejected(message))
            }
            StatusCode::PRECONDITION_FAILED => RequestFailure::Final(WriteFailure::Conflict),
            _ => RequestFailure::Final(WriteFailure::Failed(failed())),
        }
    }

    fn unexpected_response(&self) -> RequestFailure {
        RequestFailure::Final(WriteFailure::Failed(self.not_a_galley_server()))
    }

    /// Returns the error for a response that no Galley server sends.
    pub(crate) fn not_a_galley_server(&self) -> anyhow::Error {
        anyhow::anyhow!("{} does not respond like a Galley server: check the URL", self.base)
    }

    /// Retries a request with exponential back-off until it succeeds, fails for good, or has used
    /// all its attempts.
    async fn with_retries<T, F: Future<Output = Result<T, RequestFailure>>>(
        &self,
        one_try: impl FnMut() -> F,
    ) -> Result<T, WriteFailure> {
        let waits = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(100))
            .with_max_delay(Duration::from_secs(15))
            .with_max_times(RETRY_LIMIT)
            .with_jitter();
        one_try
            .retry(waits)
            .when(|failure| matches!(failure, RequestFailure::Retryable(..)))
            .adjust(|failure, wait| match failure {
                RequestFailure::Retryable(_, Some(after)) => {
                    wait.filter(|_| *after <= RETRY_AFTER_LIMIT).map(|wait| wait.max(*after))
                }
                _ => wait,
            })
            .await
            .map_err(failure)
    }

    /// Sends a GET request without retries.
    pub(crate) async fn get_once<T: DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<T, WriteFailure> {
        self.request(Method::GET, path, None, None).await.map_err(failure)
    }

    /// Returns the resource and its entity tag.
    pub(crate) async fn get_with_version<T: DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<(T, String), WriteFailure> {
        self.with_retries(|| self.request_if(Method::GET, path, None, None, None)).await
    }

    /// Updates a resource if its entity tag is still `version`. Returns the new entity tag as well.
    pub(crate) async fn put_if<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &Value,
        version: Option<&str>,
    ) -> Result<(T, String), WriteFailure> {
        self.with_retries(|| self.request_if(Method::PUT, path, Some(body), None, version)).await
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, WriteFailure> {
        self.with_retries(|| self.request(Method::GET, path, None, None)).await
    }

    /// Creates a resource. The idempotency key prevents a duplicate if the first response is lost.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &Value,
    ) -> Result<T, WriteFailure> {
        self.post_if(path, body, None).await
    }

    /// Sends a POST request with an idempotency key, and with an `If-Match` precondition.
    pub(crate) async fn post_if<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &Value,
        version: Option<&str>,
    ) -> Result<T, WriteFailure> {
        let key = format!("import-{:032x}", self.environment.new_id());
        let post = || self.request_if(Method::POST, path, Some(body), Some(&key), version);
        self.with_retries(post).await.map(|(answer, _)| answer)
    }

    /// Sends a file with an idempotency key.
    pub(crate) async fn upload<T: DeserializeOwned>(
        &self,
        path: &str,
        bytes: Bytes,
    ) -> Result<T, WriteFailure> {
        let key = format!("import-{:032x}", self.environment.new_id());
        let post = || {
            let body = Some(("application/octet-stream", bytes.clone()));
            self.send(Method::POST, path, body, Some(&key), None)
        };
        self.with_retries(post).await.map(|(answer, _)| answer)
    }

    pub(crate) async fn put<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &Value,
    ) -> Result<T, WriteFailure> {
        self.put_if(path, body, None).await.map(|(answer, _)| answer)
    }

    /// Reads all pages of a list.
    pub(crate) async fn list<T: DeserializeOwned>(
        &self,
        path: &str,
        page_size: usize,
        cursor: impl Fn(&T) -> String,
    ) -> Result<Vec<T>, WriteFailure> {
        let mut all: Vec<T> = Vec::new();
        let mut seen = HashSet::new();
        loop {
            let after = all.last().map(&cursor).unwrap_or_default();
            let page: Vec<T> = self.get(&format!("{path}perPage={page_size}{after}")).await?;
            let is_last = page.len() < page_size;
            // A cursor that repeats would make the loop endless.
            let is_news = page.last().is_none_or(|last| seen.insert(cursor(last)));
            if !is_last && (!is_news || all.len() > LIST_LENGTH_LIMIT) {
                return Err(WriteFailure::Failed(self.not_a_galley_server()));
            }
            all.extend(page);
            if is_last {
                return Ok(all);
            }
        }
    }
}

fn failure(failure: RequestFailure) -> WriteFailure {
    match failure {
        RequestFailure::Retryable(error, _) => WriteFailure::Failed(error),
        RequestFailure::Final(failure) => failure,
    }
}

impl RemoteProblem {
    /// Formats a problem, such as `slug is required`. Several issues are joined by semicolons.
    fn to_message(&self) -> String {
        if self.issues.is_empty() {
            return self.detail.clone();
        }
        let issue = |issue: &RemoteIssue| {
            let path = issue.path.iter().map(|part| match part {
                Value::String(name) => name.clone(),
                other => other.to_string(),
            });
            let path = path.collect::<Vec<_>>().join(".");
            if issue.message.starts_with(&path) {
                issue.message.clone()
            } else {
                format!("{path} {}", issue.message)
            }
        };
        self.issues.iter().map(issue).collect::<Vec<_>>().join("; ")
    }
}
