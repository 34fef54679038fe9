//! One delivery attempt, from resolving the name to reading the response.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use galley_domain::address_policy::AddressPolicy;
use galley_domain::webhook::WebhookSecret;
use http::header::{ACCEPT_ENCODING, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use http_body_util::Full;
use hyper::body::Incoming;
use rustls::ClientConfig;
use tokio::time::{Instant, timeout, timeout_at};
use url::{Position, Url};

use crate::attempt::{AttemptError, AttemptReport, DeliveryRequest};
use crate::connect::{CheckedAddresses, ReceiverConnection, ReceiverEndpoint, tls};
use crate::pool::Pool;
use crate::resolve::Resolve;
use crate::response_body;
use crate::signature::{ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, sign};

/// The timeouts of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderTimeouts {
    /// The timeout of the whole attempt, from resolving the name to the end of the response.
    pub total: Duration,
    /// The part of it for resolving and connecting.
    pub connect: Duration,
    /// The part of it for the response body, as the status alone decides the outcome.
    pub body: Duration,
}

impl Default for SenderTimeouts {
    fn default() -> Self {
        Self {
            total: Duration::from_secs(15),
            connect: Duration::from_secs(5),
            body: Duration::from_secs(2),
        }
    }
}

/// The HTTP client that makes attempts. It pools connections, follows no redirects and ignores
/// proxy settings.
#[derive(Debug)]
pub struct WebhookSender {
    resolver: Arc<dyn Resolve>,
    policy: AddressPolicy,
    limits: SenderTimeouts,
    user_agent: HeaderValue,
    tls: Arc<ClientConfig>,
    pool: Pool,
}

/// A response whose headers were read, with its connection and target.
struct ResponseHead {
    response: http::Response<Incoming>,
    connection: ReceiverConnection,
    target: ReceiverEndpoint,
    is_exception: bool,
}

impl WebhookSender {
    /// Creates a sender that calls addresses allowed by `policy`, as the user agent
    /// `Galley-Webhooks/<version>`.
    pub fn new(
        resolver: Arc<dyn Resolve>,
        policy: AddressPolicy,
        limits: SenderTimeouts,
        version: &str,
    ) -> Self {
        let user_agent = HeaderValue::try_from(format!("Galley-Webhooks/{version}"))
            .expect("a version is visible ASCII");
        Self { resolver, policy, limits, user_agent, tls: tls(), pool: Pool::default() }
    }

    /// Closes connections that have exceeded the idle timeout.
    pub fn close_idle_connections(&self) {
        self.pool.close_expired_connections();
    }

    /// Makes one attempt.
    pub async fn attempt(&self, request: &DeliveryRequest) -> AttemptReport {
        let started = Instant::now();
        let deadline = started + self.limits.total;
        let head = match timeout_at(deadline, self.head(request)).await {
            Ok(Ok(head)) => head,
            Ok(Err(error)) => return AttemptReport::failed(error, started.elapsed()),
            Err(_) => return AttemptReport::failed(AttemptError::TimedOut, started.elapsed()),
        };
        let (parts, body) = head.response.into_parts();
        let retry_after = response_body::retry_after(&parts.headers, request.timestamp);
        let mut read = Vec::new();
        let until = deadline.min(Instant::now() + self.limits.body);
        // The status decides the outcome of the attempt, so an error in the body is ignored.
        let is_complete =
            timeout_at(until, response_body::read_into(body, &mut read)).await.unwrap_or(false);
        if is_complete {
            self.pool.put(&head.target, head.connection);
        }
        let answer =
            (!head.is_exception).then(|| response_body::masked_text(&read, &request.secrets));
        AttemptReport {
            duration: started.elapsed(),
            status: Some(parts.status.as_u16()),
            error: None,
            response_body: answer,
            retry_after,
        }
    }

    async fn head(&self, request: &DeliveryRequest) -> Result<ResponseHead, AttemptError> {
        let url = Url::parse(&request.url).map_err(|_| AttemptError::InvalidUrl)?;
        let target = ReceiverEndpoint::of(&url).ok_or(AttemptError::InvalidUrl)?;
        let connect_until = Instant::now() + self.limits.connect;
        let in_time = AttemptError::ConnectTimedOut;
        let checked = timeout_at(connect_until, target.check(&*self.resolver, &self.policy))
            .await
            .map_err(|_| in_time)??;
        let is_exception = checked.is_exception;
        if let Some(mut connection) = self.pool.take(&target, &checked) {
            let message = self.message(&url, request)?;
            match connection.sender.try_send_request(message).await {
                Ok(response) => {
                    return Ok(ResponseHead { response, connection, target, is_exception });
                }
                // The receiver closed the pooled connection before it responded, so the request is
                // sent again on a new one. The event's identifier lets the receiver discard a
                // duplicate.
                Err(error) if error.error().is_closed() || is_lost(error.error()) => {}
                Err(error) => return Err(failure(error.error())),
            }
        }
        let left = connect_until.saturating_duration_since(Instant::now());
        // Boxed, as the state of a TLS handshake would enlarge the future of every attempt.
        let mut connection = Box::pin(self.connect(&target, &checked, left)).await?;
        let message = self.message(&url, request)?;
        let sent = connection.sender.try_send_request(message).await;
        let response = sent.map_err(|error| failure(error.error()))?;
        Ok(ResponseHead { response, connection, target, is_exception })
    }

    async fn connect(
        &self,
        target: &ReceiverEndpoint,
        checked: &CheckedAddresses,
        time_max: Duration,
    ) -> Result<ReceiverConnection, AttemptError> {
        let connecting = target.connect(checked, &self.tls);
        timeout(time_max, connecting).await.map_err(|_| AttemptError::ConnectTimedOut)?
    }

    fn message(
        &self,
        url: &Url,
        request: &DeliveryRequest,
    ) -> Result<http::Request<Full<Bytes>>, AttemptError> {
        let path = &url[Position::BeforePath..Position::AfterQuery];
        let mut message = http::Request::new(Full::new(request.body.clone()));
        *message.method_mut() = Method::POST;
        *message.uri_mut() = path.parse().map_err(|_| AttemptError::InvalidUrl)?;
        let value = |text: &str| HeaderValue::try_from(text).map_err(|_| AttemptError::InvalidUrl);
        let headers: &mut HeaderMap = message.headers_mut();
        headers.insert(HOST, value(&url[Position::BeforeHost..Position::AfterPort])?);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, self.user_agent.clone());
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers.insert(HeaderName::from_static(ID_HEADER), value(&request.id)?);
        headers.insert(HeaderName::from_static(TIMESTAMP_HEADER), request.timestamp.into());
        if !request.secrets.is_empty() {
            let signature = |secret: &WebhookSecret| {
                sign(&secret.key(), &request.id, request.timestamp, &request.body)
            };
            let signatures: Vec<String> = request.secrets.iter().map(signature).collect();
            let name = HeaderName::from_static(SIGNATURE_HEADER);
            headers.insert(name, value(&signatures.join(" "))?);
        }
        Ok(message)
    }
}

fn is_lost(error: &hyper::Error) -> bool {
    error.is_canceled() || error.is_incomplete_message() || is_io(error)
}

fn is_io(error: &hyper::Error) -> bool {
    use std::error::Error;
    error.source().is_some_and(<dyn Error>::is::<std::io::Error>)
}

fn failure(error: &hyper::Error) -> AttemptError {
    if error.is_parse() {
        AttemptError::InvalidResponse
    } else if error.is_timeout() {
        AttemptError::TimedOut
    } else {
        AttemptError::ConnectionLost
    }
}
