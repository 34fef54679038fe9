//! Downloads of images, only from addresses that the policy for webhooks allows.

use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use bytes::Bytes;
use galley_application::default_limits::ASSET_SIZE;
use galley_domain::address_policy::AddressPolicy;
use http::header::{LOCATION, USER_AGENT};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use percent_encoding::percent_decode_str;
use tempfile::NamedTempFile;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tower_service::Service;
use url::{Host, Url};

use crate::root_cause::root_cause;

/// The timeout of a response, and of a pause in its body.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The timeout of a download, with the wait for others.
const DOWNLOAD_TIMEOUT: Duration = Duration::from_mins(15);

/// The number of redirects that are followed.
const REDIRECTS_MAX: usize = 5;

/// The number of downloads at a time.
const CONCURRENCY: usize = 4;

/// The number of retries after a lost connection, or a response that asks for one.
const RETRY_LIMIT: usize = 3;

/// The wait before the first retry, which doubles with each.
const RETRY_WAIT: Duration = Duration::from_millis(500);

/// The error of an attempt.
enum FetchError {
    /// A retry may succeed.
    Temporary(String),
    Final(String),
}

impl FetchError {
    fn of(message: String, is_temporary: bool) -> Self {
        if is_temporary { Self::Temporary(message) } else { Self::Final(message) }
    }

    fn into_message(self) -> String {
        match self {
            Self::Temporary(message) | Self::Final(message) => message,
        }
    }
}

/// A client for downloads.
#[derive(Debug)]
pub(crate) struct Fetcher {
    client: Client<HttpsConnector<HttpConnector<GuardedResolver>>, Empty<Bytes>>,
    policy: AddressPolicy,
    permits: Semaphore,
}

impl Fetcher {
    pub(crate) fn new(policy: AddressPolicy) -> Self {
        let mut connector = HttpConnector::new_with_resolver(GuardedResolver(policy.clone()));
        connector.enforce_http(false);
        connector.set_connect_timeout(Some(TIMEOUT));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(galley_tls::client())
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_max_idle_per_host(CONCURRENCY)
            .build(connector);
        Self { client, policy, permits: Semaphore::new(CONCURRENCY) }
    }

    /// Downloads a file. The message of an error follows the URL.
    pub(crate) async fn fetch(&self, url: &str) -> Result<NamedTempFile, String> {
        let fetched = timeout(DOWNLOAD_TIMEOUT, self.download(url)).await;
        fetched.unwrap_or_else(|_| Err("timed out".to_owned()))
    }

    async fn download(&self, url: &str) -> Result<NamedTempFile, String> {
        let _permit = self.permits.acquire().await.map_err(|error| error.to_string())?;
        let url = Url::parse(url).map_err(|error| error.to_string())?;
        let waits = ExponentialBuilder::default()
            .with_min_delay(RETRY_WAIT)
            .with_max_times(RETRY_LIMIT)
            .with_jitter();
        (async || self.follow(url.clone()).await)
            .retry(waits)
            .when(|error| matches!(error, FetchError::Temporary(_)))
            .await
            .map_err(FetchError::into_message)
    }

    /// Downloads a file once, at the end of the redirects.
    async fn follow(&self, mut url: Url) -> Result<NamedTempFile, FetchError> {
        for _ in 0..=REDIRECTS_MAX {
            let response = self.request(&url).await?;
            if !response.status().is_redirection() {
                return save(response).await;
            }
            let place = response.headers().get(LOCATION).and_then(|place| place.to_str().ok());
            let missing = || FetchError::Final("has a redirect without Location".to_owned());
            url = url.join(place.ok_or_else(missing)?).map_err(of_file)?;
        }
        Err(FetchError::Final(format!("has more than {REDIRECTS_MAX} redirects")))
    }

    async fn request(&self, url: &Url) -> Result<Response<Incoming>, FetchError> {
        if !matches!(url.scheme(), "http" | "https") {
            let message = format!("leads to {url}, which is no web address");
            return Err(FetchError::Final(message));
        }
        // The connector resolves names only, so addresses are checked here.
        let literal = match url.host() {
            Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
            _ => None,
        };
        if let Some(address) = literal {
            self.policy.check(address).map_err(of_file)?;
        }
        let request = Request::get(url.as_str())
            .header(USER_AGENT, concat!("galley-import/", env!("CARGO_PKG_VERSION")))
            .body(Empty::new())
            .map_err(of_file)?;
        let response = timeout(TIMEOUT, self.client.request(request)).await;
        response.map_err(timed_out)?.map_err(|error| {
            let message = root_cause(&error);
            // Hosts that don't exist, and those that the policy rejects, are no better later.
            FetchError::of(message, !error.is_connect())
        })
    }
}

fn of_file(error: impl std::fmt::Display) -> FetchError {
    FetchError::Final(error.to_string())
}

fn timed_out(_: tokio::time::error::Elapsed) -> FetchError {
    FetchError::Temporary("timed out".to_owned())
}

/// Writes the body of a response into a temporary file.
async fn save(response: Response<Incoming>) -> Result<NamedTempFile, FetchError> {
    let status = response.status();
    if !status.is_success() {
        let message = format!("responded with {status}");
        let is_temporary = status.is_server_error()
            || matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS);
        return Err(FetchError::of(message, is_temporary));
    }
    let mut file = NamedTempFile::new().map_err(of_file)?;
    let (mut body, mut size) = (response.into_body(), 0);
    loop {
        let frame = timeout(TIMEOUT, body.frame()).await.map_err(timed_out)?;
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|error| FetchError::Temporary(root_cause(&error)))?;
        let Ok(bytes) = frame.into_data() else { continue };
        size += bytes.len() as u64;
        if size > ASSET_SIZE {
            return Err(FetchError::Final(format!("has more than {ASSET_SIZE} bytes")));
        }
        file.write_all(&bytes).map_err(of_file)?;
    }
    file.flush().map_err(of_file)?;
    Ok(file)
}

/// Returns the filename of a URL.
pub(crate) fn filename(url: &str) -> String {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let last = path.rsplit('/').next().unwrap_or_default();
    let name = percent_decode_str(last).decode_utf8_lossy();
    let name: String = name.chars().filter(|c| !c.is_control() && !"/\\".contains(*c)).collect();
    if name.trim_matches('.').is_empty() { "image".to_owned() } else { name }
}

/// The system's resolver, without addresses that the policy rejects.
#[derive(Debug, Clone)]
struct GuardedResolver(AddressPolicy);

impl Service<Name> for GuardedResolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let policy = self.0.clone();
        Box::pin(async move {
            let found: Vec<_> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            for address in &found {
                policy.check(address.ip()).map_err(std::io::Error::other)?;
            }
            Ok(found.into_iter())
        })
    }
}
