//! What every handler has at hand.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;

use axum::http::HeaderValue;
use galley_application::secrets::SecretKey;
use galley_application::{Environment, LogLimit, Service, ServiceSettings, TokenUse};
use galley_content::{ContentError, Loss, Tree};
use galley_domain::address_policy::AddressPolicy;
use galley_domain::{Invalid, WorkspaceId};
use galley_mail::Mailer;
use galley_runtime::{CpuPool, Overloaded};
use galley_storage::Database;
use tokio::sync::watch;

use crate::resources::overload::{self, Overload};
use crate::resources::rate_limit::RateLimit;
use crate::resources::request_memory::WorkspaceMemory;
use crate::resources::response_cache::ResponseCache;
use crate::resources::stream_limit::{StreamLimiter, StreamPermit};
use crate::resources::token_cache::TokenCache;
use crate::respond::response::File;

/// Bounds on what a client may do.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of a request's head.
    pub head_max: usize,
    /// Bytes of a request's body.
    pub body_max: usize,
    /// Bytes of HTML as content.
    pub content_max: usize,
    /// Bytes of an answer, beyond which a page of a list has to have fewer items.
    pub page_max: usize,
    /// How long a client may take to send its head, or its body.
    pub receive_time_max: Duration,
    /// The origins whose scripts browsers may let in.
    pub cors_origins: Vec<HeaderValue>,
    /// Bytes of answers that are remembered; 0: none.
    pub answers_max: u64,
    /// Requests that a token may send in a minute; 0: as many as it likes.
    pub rate_limit: u32,
    /// Invites that a workspace may send in an hour.
    pub invites_per_hour: u32,
    /// The addresses that webhooks may call.
    pub webhook_addresses: AddressPolicy,
    /// Where others reach the service.
    pub public_url: String,
    /// What this program is called among those that serve the same database.
    pub node: String,
    /// How long it serves on when it is told to stop, so that a balancer notices first.
    pub stop_delay: Duration,
    /// Connections that are served at the same time.
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

/// The running service. Clones are the same one.
#[derive(Debug, Clone)]
pub struct App(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    service: Service,
    limits: Limits,
    token_cache: TokenCache,
    response_cache: ResponseCache,
    rate_limit: RateLimit,
    token_use: TokenUse,
    is_draining: AtomicBool,
    streams: StreamLimiter,
    cpu_pool: CpuPool,
    request_memory: WorkspaceMemory,
    response_memory: WorkspaceMemory,
    openapi_document: OnceLock<&'static LazyLock<File>>,
    overload: Overload,
    rejected_credentials: LogLimit<Option<IpAddr>>,
}

/// The memory of requests' bodies: at least so many bytes, and so many of the largest bodies.
const REQUEST_MEMORY_MIN: usize = 64 * 1024 * 1024;
const BODIES_MIN: usize = 8;

/// The number of largest pages that fit into the memory of responses.
const PAGES_MIN: usize = 4;

/// The copies of a page in memory: the rows, and the JSON.
pub(crate) const COPIES: usize = 2;

/// The most bytes of a tree as JSON: several times what the largest sensible HTML makes.
const TREE_MAX: usize = 16 * 1024 * 1024;

/// The limit on bytes of a document that is processed on the threads that serve requests.
const INLINE_CONTENT_MAX: usize = 32 * 1024;

impl App {
    /// A service on `database`, whose secrets are encrypted with `key`, and whose mails `mailer` sends: without
    /// one they stay where they are.
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
        let request_memory = REQUEST_MEMORY_MIN.max(limits.body_max.saturating_mul(BODIES_MIN));
        let response_memory = limits.page_max.saturating_mul(PAGES_MIN * COPIES);
        Self(Arc::new(Parts {
            service,
            token_cache: TokenCache::new(),
            response_cache: ResponseCache::new(limits.answers_max),
            limits,
            rate_limit,
            token_use,
            is_draining: AtomicBool::new(false),
            streams: StreamLimiter::default(),
            cpu_pool: CpuPool::default(),
            request_memory: WorkspaceMemory::new(request_memory),
            response_memory: WorkspaceMemory::new(response_memory),
            openapi_document: OnceLock::new(),
            overload: Overload::new(),
            rejected_credentials: LogLimit::default(),
        }))
    }

    /// Where everything is kept.
    pub fn database(&self) -> &Database {
        self.0.service.database()
    }

    /// Time and randomness.
    pub fn environment(&self) -> &Environment {
        self.0.service.environment()
    }

    /// What the database's secrets are encrypted with.
    pub(crate) fn key(&self) -> &SecretKey {
        self.0.service.key()
    }

    /// Returns the token cache.
    pub(crate) fn token_cache(&self) -> &TokenCache {
        &self.0.token_cache
    }

    /// Returns the response cache.
    pub(crate) fn response_cache(&self) -> &ResponseCache {
        &self.0.response_cache
    }

    /// How many requests each token may send.
    pub(crate) fn rate_limit(&self) -> &RateLimit {
        &self.0.rate_limit
    }

    /// Bounds the log's lines about rejected credentials, by client.
    pub(crate) fn rejected_credentials(&self) -> &LogLimit<Option<IpAddr>> {
        &self.0.rejected_credentials
    }

    /// When tokens were last used.
    pub(crate) fn token_use(&self) -> &TokenUse {
        &self.0.token_use
    }

    /// Starts draining: `/readyz` fails, and responses close their connection.
    pub(crate) fn start_draining(&self) {
        self.0.is_draining.store(true, Ordering::Relaxed);
    }

    /// Returns true while the server drains.
    pub(crate) fn is_draining(&self) -> bool {
        self.0.is_draining.load(Ordering::Relaxed)
    }

    /// Says to whatever goes on by itself that the service stops.
    pub(crate) fn stop(&self) {
        self.0.service.stop();
    }

    /// Becomes true when the service stops.
    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.0.service.stopping()
    }

    /// Returns a permit for a stream of events, if the limit allows one more.
    pub(crate) fn stream_permit(&self, workspace: WorkspaceId) -> Option<StreamPermit> {
        self.0.streams.acquire(workspace)
    }

    /// Returns the parts without HTTP.
    pub(crate) fn service(&self) -> &Service {
        &self.0.service
    }

    /// Bounds on what a client may do.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Returns the memory of requests' bodies.
    pub(crate) fn request_memory(&self) -> &WorkspaceMemory {
        &self.0.request_memory
    }

    /// Returns the memory of responses that are not sent yet.
    pub(crate) fn response_memory(&self) -> &WorkspaceMemory {
        &self.0.response_memory
    }

    /// Returns the OpenAPI document.
    pub(crate) fn openapi_document(&self) -> &'static File {
        self.0.openapi_document.get().expect("the router provides the document")
    }

    /// Sets the OpenAPI document. The router calls this, as it knows all routes.
    pub(crate) fn set_openapi_document(&self, document: &'static LazyLock<File>) {
        let _ = self.0.openapi_document.set(document);
    }

    /// Returns the load shedder.
    pub(crate) fn overload(&self) -> &Overload {
        &self.0.overload
    }

    /// Runs `work` on a document of `size` bytes: a large one on the CPU pool.
    pub(crate) async fn run_by_size<T: Send + 'static>(
        &self,
        size: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Overloaded> {
        if size <= INLINE_CONTENT_MAX {
            return Ok(work());
        }
        self.run_on_cpu_pool(work).await
    }

    /// Runs `work` on the CPU pool.
    pub(crate) async fn run_on_cpu_pool<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Overloaded> {
        overload::uncounted(self.0.cpu_pool.run(work)).await
    }

    /// The JSON text of the tree that `html` says, and with `reports` what of it the tree lacks. To be
    /// called where it holds up nobody.
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
