//! The state that all handlers share.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::HeaderValue;
use axum::response::Response;
use galley_application::secrets::SecretKey;
use galley_application::{Environment, LogLimit, Rejection, Service, ServiceSettings, TokenUse};
use galley_content::{ContentError, Loss, Tree};
use galley_domain::address_policy::AddressPolicy;
use galley_domain::{Invalid, WorkspaceId};
use galley_mail::Mailer;
use galley_runtime::{CpuPool, Overloaded};
use galley_storage::Database;
use serde::Serialize;
use tokio::sync::watch;

use crate::http::answers::Answers;
use crate::http::overload::{self, Overload};
use crate::http::rate_limit::RateLimit;
use crate::http::response;
use crate::http::room::{Bounded, WorkspaceMemory, WorkspaceReservation};
use crate::http::stream_places::{StreamPlace, StreamPlaces};
use crate::problem::Problem;

/// The limits and settings of the HTTP service.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The size limit of a request's headers, in bytes.
    pub head_max: usize,
    /// The size limit of a request's body, in bytes.
    pub body_max: usize,
    /// The size limit of a piece's HTML content, in bytes.
    pub content_max: usize,
    /// The size limit of a response, in bytes. A list that exceeds it needs a smaller page.
    pub page_max: usize,
    /// The timeout for receiving the headers, or the body, of a request.
    pub receive_time_max: Duration,
    /// The origins that CORS allows.
    pub cors_origins: Vec<HeaderValue>,
    /// The size of the response cache, in bytes. 0 disables it.
    pub answers_max: u64,
    /// The requests that a token may send per minute. 0 means unlimited.
    pub rate_limit: u32,
    /// The invites that a workspace may send per hour.
    pub invites_per_hour: u32,
    /// The addresses that webhooks may call.
    pub webhook_addresses: AddressPolicy,
    /// The URL at which clients reach the service.
    pub public_url: String,
    /// The name of this node among those that serve the same database.
    pub node: String,
    /// The time for which the service goes on serving after a stop signal, so that load balancers
    /// notice the stop first.
    pub stop_delay: Duration,
    /// The limit of concurrent connections.
    pub connections_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_max: 16 * 1024,
            body_max: 8 * 1024 * 1024,
            content_max: 2 * 1024 * 1024,
            page_max: 64 * 1024 * 1024,
            receive_time_max: Duration::from_secs(30),
            cors_origins: Vec::new(),
            answers_max: 64 * 1024 * 1024,
            rate_limit: 0,
            invites_per_hour: 100,
            webhook_addresses: AddressPolicy::default(),
            public_url: String::new(),
            node: String::new(),
            stop_delay: Duration::ZERO,
            connections_max: 10_000,
        }
    }
}

/// The running service. Clones share it.
#[derive(Debug, Clone)]
pub struct App(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    service: Service,
    limits: Limits,
    answers: Answers,
    rate_limit: RateLimit,
    token_use: TokenUse,
    is_leaving: AtomicBool,
    streams: StreamPlaces,
    cpu_pool: CpuPool,
    room: WorkspaceMemory,
    answer_room: WorkspaceMemory,
    overload: Overload,
    rejected_credentials: LogLimit<Option<IpAddr>>,
}

/// The memory budget of request bodies: at least so many bytes, and at least so many of the largest
/// bodies.
const ROOM_MIN: usize = 64 * 1024 * 1024;
const BODIES_MIN: usize = 8;

/// The number of the largest responses that fit into the memory budget of responses.
const PAGES_MIN: usize = 4;

/// The copies of a response's data in memory: the rows as read, and the JSON as sent.
const MADE_OF: usize = 2;

/// The size limit of a content tree as JSON, in bytes: several times that of the largest sensible
/// HTML.
const TREE_MAX: usize = 16 * 1024 * 1024;

/// The size in bytes up to which a document is processed on the calling thread. Larger ones run on
/// the CPU pool.
const INLINE_CONTENT_MAX: usize = 32 * 1024;

impl App {
    /// Creates a service on `database`. `key` encrypts its secrets, and `mailer` sends its mails.
    /// Without a mailer, mails stay in their queue.
    pub fn new(
        database: Database,
        environment: Environment,
        key: SecretKey,
        limits: Limits,
        mailer: Option<Mailer>,
    ) -> Self {
        let settings = ServiceSettings {
            webhook_addresses: limits.webhook_addresses.clone(),
            public_url: limits.public_url.clone(),
            node: limits.node.clone(),
        };
        let service = Service::new(database, environment, key, settings, mailer);
        let (rate_limit, token_use) = (RateLimit::new(limits.rate_limit), TokenUse::default());
        let room = WorkspaceMemory::new(ROOM_MIN.max(limits.body_max.saturating_mul(BODIES_MIN)));
        let answer_room = WorkspaceMemory::new(limits.page_max.saturating_mul(PAGES_MIN * MADE_OF));
        Self(Arc::new(Parts {
            service,
            answers: Answers::new(limits.answers_max),
            limits,
            rate_limit,
            token_use,
            is_leaving: AtomicBool::new(false),
            streams: StreamPlaces::default(),
            cpu_pool: CpuPool::default(),
            room,
            answer_room,
            overload: Overload::new(),
            rejected_credentials: LogLimit::default(),
        }))
    }

    /// Returns the database.
    pub fn database(&self) -> &Database {
        self.0.service.database()
    }

    /// Returns the source of time and randomness.
    pub fn environment(&self) -> &Environment {
        self.0.service.environment()
    }

    /// Returns the key that encrypts the database's secrets.
    pub(crate) fn key(&self) -> &SecretKey {
        self.0.service.key()
    }

    /// Returns the response cache.
    pub(crate) fn answers(&self) -> &Answers {
        &self.0.answers
    }

    /// Returns the rate limit of tokens.
    pub(crate) fn rate_limit(&self) -> &RateLimit {
        &self.0.rate_limit
    }

    /// Returns the limit of log lines about rejected credentials, by client address.
    pub(crate) fn rejected_credentials(&self) -> &LogLimit<Option<IpAddr>> {
        &self.0.rejected_credentials
    }

    /// Returns the record of when tokens were last used.
    pub(crate) fn token_use(&self) -> &TokenUse {
        &self.0.token_use
    }

    /// Starts draining: responses close their connections, and `/readyz` reports the stop.
    pub(crate) fn leave(&self) {
        self.0.is_leaving.store(true, Ordering::Relaxed);
    }

    /// Returns true if the service is draining.
    pub(crate) fn is_leaving(&self) -> bool {
        self.0.is_leaving.load(Ordering::Relaxed)
    }

    /// Signals background tasks to stop.
    pub(crate) fn stop(&self) {
        self.0.service.stop();
    }

    /// Returns a receiver that becomes true when the service stops.
    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.0.service.stopping()
    }

    /// Claims a permit for an event stream, if the limits allow one more.
    pub(crate) fn stream_place(&self, workspace: WorkspaceId) -> Option<StreamPlace> {
        self.0.streams.take(workspace)
    }

    /// Returns the parts without HTTP.
    pub(crate) fn service(&self) -> &Service {
        &self.0.service
    }

    /// Returns the limits and settings.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Returns the memory budget of request bodies.
    pub(super) fn room(&self) -> &WorkspaceMemory {
        &self.0.room
    }

    /// Returns the memory budget of responses until they are sent.
    pub(super) fn answer_room(&self) -> &WorkspaceMemory {
        &self.0.answer_room
    }

    /// Reserves memory for a response that shows so many bytes of a workspace. Fails if the budget
    /// is exceeded.
    pub(crate) fn space_for_answer(
        &self,
        workspace: WorkspaceId,
        bytes: usize,
    ) -> Result<WorkspaceReservation, Overloaded> {
        let mut space = self.0.answer_room.reservation(Some(workspace));
        space.resize(bytes.saturating_mul(MADE_OF))?;
        Ok(space)
    }

    /// Serializes a response to JSON within its reservation. Returns `None` if it exceeds the size
    /// limit.
    pub(crate) fn made_in(
        &self,
        mut space: WorkspaceReservation,
        body: &impl Serialize,
    ) -> Result<Option<Bytes>, Overloaded> {
        let Some(bytes) = Bounded::json(body, self.0.limits.page_max) else { return Ok(None) };
        // The rows that it was built from are dropped soon.
        space.resize(bytes.len())?;
        Ok(Some(space.attach(bytes)))
    }

    /// Returns 200 with a list, or with a resource of this version, that may be large. Rejects the
    /// parameter `field` if the response exceeds the size limit.
    pub(crate) fn answer(
        &self,
        workspace: WorkspaceId,
        version: i64,
        body: &impl Serialize,
        field: &str,
    ) -> Result<Response, Problem> {
        let made = self.made_in(self.space_for_answer(workspace, 0)?, body)?;
        let made = made.ok_or_else(|| Rejection::too_much(field, self.0.limits.page_max))?;
        Ok(response::resource_in_space(version, made))
    }

    /// Returns the overload detector.
    pub(super) fn overload(&self) -> &Overload {
        &self.0.overload
    }

    /// Runs `work` on a document of `size` bytes: on the CPU pool if it is large, else on the
    /// calling thread.
    pub(crate) async fn process<T: Send + 'static>(
        &self,
        size: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Overloaded> {
        if size <= INLINE_CONTENT_MAX {
            return Ok(work());
        }
        self.process_apart(work).await
    }

    /// Runs long work on the CPU pool.
    pub(crate) async fn process_apart<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Overloaded> {
        overload::aside(self.0.cpu_pool.run(work)).await
    }

    /// Converts HTML to the JSON text of its tree, and with `reports` lists the conversion
    /// warnings. Run it on the CPU pool for large documents.
    pub(crate) fn content_from_html(
        &self,
        html: &str,
        reports: bool,
    ) -> Result<(String, Vec<Loss>), Invalid> {
        let max = self.limits().content_max;
        if html.len() > max {
            return Err(Invalid::too_long(max, "bytes of HTML"));
        }
        let limits = galley_content::Limits::default();
        let read = if reports {
            Tree::from_html_with_losses(html, &limits)
        } else {
            Tree::from_html(html, &limits).map(|tree| (tree, Vec::new()))
        };
        match read {
            Ok((tree, losses)) => {
                let json = tree.to_json_within(TREE_MAX).ok_or_else(|| {
                    let message =
                        format!("is not accepted: its tree would have over {TREE_MAX} bytes");
                    Invalid::new("content_too_complex", message)
                })?;
                Ok((json, losses))
            }
            Err(error @ ContentError::TooComplex) => {
                Err(Invalid::new("content_too_complex", format!("is not accepted: {error}")))
            }
            Err(error) => {
                Err(Invalid::new("content_too_deep", format!("is not accepted: {error}")))
            }
        }
    }
}
