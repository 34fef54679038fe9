//! The state that all handlers share.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use galley_api_types::setting::SettingBody;
use galley_application::default_limits;
use galley_application::secrets::SecretKey;
use galley_application::{
    AssetSettings, CredentialUse, Environment, LogLimit, Service, ServiceSettings,
};
use galley_domain::WorkspaceId;
use galley_domain::address_policy::{AddressPolicy, IpNet};
use galley_domain::revision_retention::RevisionRetention;
use galley_domain::text::WebOrigin;
use galley_domain::trash;
use galley_mail::Mailer;
use galley_openid_connect::Provider;
use galley_runtime::{CpuPool, Overloaded};
use galley_storage::Database;
use tokio::sync::watch;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::resources::console_files::ConsoleFiles;
use crate::resources::overload::{self, OverloadDetector};
use crate::resources::rate_limit::RateLimit;
use crate::resources::request_memory::WorkspaceMemory;
use crate::resources::response_cache::ResponseCache;
use crate::resources::sessions::SessionSettings;
use crate::resources::sign_in_limit::SignInLimit;
use crate::resources::stream_limit::{StreamLimiter, StreamPermit};
use crate::resources::token_cache::TokenCache;

/// The limits and settings of the HTTP service.
#[derive(Debug, Clone)]
pub struct ServerLimits {
    /// The size limit of a request's headers, in bytes.
    pub header_size_limit: usize,
    /// The size limit of a request's body, in bytes.
    pub body_size_limit: usize,
    /// The size limit of a piece's content as HTML or Markdown, in bytes.
    pub content_size_limit: usize,
    /// The size limit of a response, in bytes. A list that exceeds it needs a smaller page.
    pub response_size_limit: usize,
    /// The timeout for receiving the headers, or the body, of a request.
    pub receive_timeout: Duration,
    /// True if unknown query parameters are ignored. Otherwise they are rejected.
    pub ignores_unknown_parameters: bool,
    /// The origins that CORS allows.
    pub cors_origins: Vec<WebOrigin>,
    /// The size of the response cache, in bytes. 0 disables it.
    pub response_cache_size: u64,
    /// The requests that a token may send per minute. 0 means unlimited.
    pub rate_limit: u32,
    /// The invites that a workspace may send per hour.
    pub invites_per_hour: u32,
    /// The addresses that webhooks may call.
    pub webhook_addresses: AddressPolicy,
    /// The networks of proxies whose `X-Forwarded-For` states the addresses of clients.
    pub trusted_proxies: Vec<IpNet>,
    /// The URL at which clients reach the service.
    pub public_url: String,
    /// True if people may sign in over http at any address.
    pub allows_sign_in_over_http: bool,
    /// The identity provider with which people may sign in.
    pub identity_provider: Option<Provider>,
    /// The files of the web console.
    pub console: ConsoleFiles,
    /// The effective settings of the program, as they are shown.
    pub settings: Vec<SettingBody>,
    /// The name of this node among those that serve the same database.
    pub node: String,
    /// The time for which revisions are kept.
    pub revision_retention: RevisionRetention,
    /// The days for which deleted pieces and groups are kept. 0 turns the trash off.
    pub trash_retention_days: u32,
    /// The settings of assets.
    pub assets: AssetSettings,
    /// The time for which the service goes on serving after a stop signal, so that load balancers
    /// notice the stop first.
    pub drain_delay: Duration,
    /// The limit of concurrent connections.
    pub connection_limit: usize,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            header_size_limit: default_limits::HEADER_SIZE,
            body_size_limit: default_limits::BODY_SIZE,
            content_size_limit: default_limits::CONTENT_SIZE,
            response_size_limit: default_limits::RESPONSE_SIZE,
            receive_timeout: Duration::from_secs(default_limits::RECEIVE_TIMEOUT_SECONDS),
            ignores_unknown_parameters: false,
            cors_origins: Vec::new(),
            response_cache_size: u64::from(default_limits::response_cache_mib()) << 20,
            rate_limit: 0,
            invites_per_hour: default_limits::INVITES_PER_HOUR,
            webhook_addresses: AddressPolicy::default(),
            trusted_proxies: Vec::new(),
            public_url: String::new(),
            allows_sign_in_over_http: false,
            identity_provider: None,
            console: ConsoleFiles::default(),
            settings: Vec::new(),
            node: String::new(),
            revision_retention: RevisionRetention::default(),
            trash_retention_days: trash::RETENTION_DAYS,
            assets: AssetSettings::default(),
            drain_delay: Duration::ZERO,
            connection_limit: 10_000,
        }
    }
}

/// The running service. Clones share it.
#[derive(Debug, Clone)]
pub struct App(Arc<AppParts>);

#[derive(Debug)]
struct AppParts {
    service: Service,
    limits: ServerLimits,
    token_cache: TokenCache,
    response_cache: ResponseCache,
    rate_limit: RateLimit,
    credential_use: CredentialUse,
    sessions: SessionSettings,
    sign_in_limit: SignInLimit,
    is_draining: AtomicBool,
    stream_limiter: StreamLimiter,
    cpu_pool: CpuPool,
    request_memory: WorkspaceMemory,
    response_memory: WorkspaceMemory,
    overload: OverloadDetector,
    imports: Semaphore,
    rejected_credentials: LogLimit<Option<IpAddr>>,
}

/// The memory budget of request bodies: at least so many bytes, and at least so many of the largest
/// bodies.
const REQUEST_MEMORY_MIN: usize = 64 * 1024 * 1024;
const LARGEST_BODIES_MIN: usize = 8;

/// The interval at which the state of rate limits is cleaned up.
const LIMIT_CLEANUP_INTERVAL: Duration = Duration::from_mins(10);

/// The limit of concurrent imports. Each converts several files at a time, and the others wait.
const CONCURRENT_IMPORTS: usize = 2;

/// The number of the largest responses that fit into the memory budget of responses.
const LARGEST_RESPONSES_MIN: usize = 4;

/// The copies of a response's data in memory: the rows as read, and the JSON as sent.
pub(crate) const COPIES: usize = 2;

/// The size in bytes up to which a document is processed on the calling thread. Larger ones run on
/// the CPU pool.
const INLINE_CONTENT_LIMIT: usize = 32 * 1024;

impl App {
    /// Creates a service on `database`. `key` encrypts its secrets, and `mailer` sends its mails.
    /// Without a mailer, mails stay in their queue.
    pub fn new(
        database: Database,
        environment: Environment,
        key: SecretKey,
        limits: ServerLimits,
        mailer: Option<Mailer>,
    ) -> Self {
        let settings = ServiceSettings {
            webhook_addresses: limits.webhook_addresses.clone(),
            public_url: limits.public_url.clone(),
            node: limits.node.clone(),
            revision_retention: limits.revision_retention,
            trash_retention_days: limits.trash_retention_days,
            identity_provider: limits.identity_provider.clone(),
            assets: limits.assets.clone(),
        };
        let service = Service::new(database, environment, key, settings, mailer);
        let sessions = SessionSettings::new(&limits.public_url, limits.allows_sign_in_over_http);
        let rate_limit = RateLimit::new(limits.rate_limit);
        let request_memory =
            REQUEST_MEMORY_MIN.max(limits.body_size_limit.saturating_mul(LARGEST_BODIES_MIN));
        let response_memory =
            limits.response_size_limit.saturating_mul(LARGEST_RESPONSES_MIN * COPIES);
        Self(Arc::new(AppParts {
            service,
            token_cache: TokenCache::new(),
            response_cache: ResponseCache::new(limits.response_cache_size),
            limits,
            rate_limit,
            credential_use: CredentialUse::default(),
            sessions,
            sign_in_limit: SignInLimit::default(),
            is_draining: AtomicBool::new(false),
            stream_limiter: StreamLimiter::default(),
            cpu_pool: CpuPool::default(),
            request_memory: WorkspaceMemory::new(request_memory),
            response_memory: WorkspaceMemory::new(response_memory),
            overload: OverloadDetector::new(),
            imports: Semaphore::new(CONCURRENT_IMPORTS),
            rejected_credentials: LogLimit::default(),
        }))
    }

    /// Waits until fewer imports run than the limit.
    pub(crate) async fn import_permit(&self) -> SemaphorePermit<'_> {
        self.0.imports.acquire().await.expect("the semaphore is never closed")
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

    /// Returns the token cache.
    pub(crate) fn token_cache(&self) -> &TokenCache {
        &self.0.token_cache
    }

    /// Returns the response cache.
    pub(crate) fn response_cache(&self) -> &ResponseCache {
        &self.0.response_cache
    }

    /// Returns the rate limit of tokens.
    pub(crate) fn rate_limit(&self) -> &RateLimit {
        &self.0.rate_limit
    }

    /// Returns the limit of log lines about rejected credentials, by client address.
    pub(crate) fn rejected_credentials(&self) -> &LogLimit<Option<IpAddr>> {
        &self.0.rejected_credentials
    }

    /// Returns the record of when credentials were last used.
    pub(crate) fn credential_use(&self) -> &CredentialUse {
        &self.0.credential_use
    }

    /// Returns the settings of browsers' sessions.
    pub(crate) fn sessions(&self) -> &SessionSettings {
        &self.0.sessions
    }

    /// Returns the limit on sign-ins of a client.
    pub(crate) fn sign_in_limit(&self) -> &SignInLimit {
        &self.0.sign_in_limit
    }

    /// Deletes the state of rate limits that is no longer needed, at an interval. Never returns.
    pub(crate) async fn clean_up_limits(&self) {
        loop {
            self.rate_limit().delete_full_buckets();
            self.sign_in_limit().delete_full_buckets();
            tokio::time::sleep(LIMIT_CLEANUP_INTERVAL).await;
        }
    }

    /// Starts draining: responses close their connections, and `/readyz` reports the stop.
    pub(crate) fn start_draining(&self) {
        self.0.is_draining.store(true, Ordering::Relaxed);
    }

    /// Returns true if the service is draining.
    pub(crate) fn is_draining(&self) -> bool {
        self.0.is_draining.load(Ordering::Relaxed)
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
    pub(crate) fn stream_permit(&self, workspace: WorkspaceId) -> Option<StreamPermit> {
        self.0.stream_limiter.acquire(workspace)
    }

    /// Returns the parts without HTTP.
    pub(crate) fn service(&self) -> &Service {
        &self.0.service
    }

    /// Returns the limits and settings.
    pub fn limits(&self) -> &ServerLimits {
        &self.0.limits
    }

    /// Returns the URL below which the addresses of assets are.
    pub(crate) fn asset_base_url(&self) -> &str {
        &self.0.limits.assets.base_url
    }

    /// Returns the size limit of a file in bytes.
    pub(crate) fn asset_size_limit(&self) -> u64 {
        self.0.limits.assets.size_limit
    }

    /// Returns the memory budget of request bodies.
    pub(crate) fn request_memory(&self) -> &WorkspaceMemory {
        &self.0.request_memory
    }

    /// Returns the memory budget of responses until they are sent.
    pub(crate) fn response_memory(&self) -> &WorkspaceMemory {
        &self.0.response_memory
    }

    /// Returns the overload detector.
    pub(crate) fn overload(&self) -> &OverloadDetector {
        &self.0.overload
    }

    /// Runs `work` on a document of `size` bytes: on the CPU pool if it is large, else on the
    /// calling thread.
    pub(crate) async fn run_by_size<T: Send + 'static>(
        &self,
        size: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Overloaded> {
        if size <= INLINE_CONTENT_LIMIT {
            return Ok(work());
        }
        self.run_on_cpu_pool(work).await
    }

    /// Runs long work on the CPU pool.
    pub(crate) async fn run_on_cpu_pool<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Overloaded> {
        overload::uncounted(self.0.cpu_pool.run(work)).await
    }
}
