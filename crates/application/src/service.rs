//! The parts that operations and workers share.

use std::sync::Arc;

use galley_delivery::{SenderTimeouts, WebhookSender};
use galley_domain::WebhookId;
use galley_domain::address_policy::AddressPolicy;
use galley_domain::revision_retention::RevisionRetention;
use galley_mail::Mailer;
use galley_openid_connect::Provider;
use galley_storage::Database;
use tokio::sync::watch;

use crate::asset_resources::{AssetResources, AssetSettings};
use crate::environment::Environment;
use crate::log_limit::LogLimit;
use crate::references::ReferenceCache;
use crate::rejected_credentials::RejectedCredentialsCounter;
use crate::secrets::SecretKey;

/// The settings of workers.
#[derive(Debug, Clone, Default)]
pub struct ServiceSettings {
    /// The addresses that webhooks may call.
    pub webhook_addresses: AddressPolicy,
    /// The URL at which clients reach the service, for links in mails.
    pub public_url: String,
    /// The name of this process among those that serve the same database.
    pub node: String,
    /// The time for which revisions are kept.
    pub revision_retention: RevisionRetention,
    /// The days for which deleted pieces and groups are kept. 0 turns the trash off.
    pub trash_retention_days: u32,
    /// The identity provider with which people may sign in.
    pub identity_provider: Option<Provider>,
    /// The settings of assets.
    pub assets: AssetSettings,
}

/// The running service without HTTP: the database, and the resources of workers. Clones share it.
#[derive(Debug, Clone)]
pub struct Service(Arc<ServiceParts>);

#[derive(Debug)]
struct ServiceParts {
    database: Database,
    environment: Environment,
    key: SecretKey,
    settings: ServiceSettings,
    sender: Arc<WebhookSender>,
    mailer: Option<Arc<Mailer>>,
    stopping: watch::Sender<bool>,
    failing_webhooks: LogLimit<WebhookId>,
    references: Arc<ReferenceCache>,
    rejected_credentials: RejectedCredentialsCounter,
    assets: AssetResources,
}

impl Service {
    /// Creates a service on `database`. `key` encrypts its secrets. `mailer` sends its mails;
    /// without a mailer they stay queued.
    pub fn new(
        database: Database,
        environment: Environment,
        key: SecretKey,
        settings: ServiceSettings,
        mailer: Option<Mailer>,
    ) -> Self {
        let sender = WebhookSender::new(
            Arc::clone(environment.resolver()),
            settings.webhook_addresses.clone(),
            SenderTimeouts::default(),
            env!("CARGO_PKG_VERSION"),
        );
        let references = Arc::new(ReferenceCache::default());
        Self(Arc::new(ServiceParts {
            database,
            environment: environment.with_references(Arc::clone(&references)),
            key,
            settings,
            sender: Arc::new(sender),
            mailer: mailer.map(Arc::new),
            stopping: watch::Sender::new(false),
            failing_webhooks: LogLimit::default(),
            references,
            rejected_credentials: RejectedCredentialsCounter::default(),
            assets: AssetResources::default(),
        }))
    }

    /// Returns the database.
    pub fn database(&self) -> &Database {
        &self.0.database
    }

    /// Returns the source of time and randomness.
    pub fn environment(&self) -> &Environment {
        &self.0.environment
    }

    /// Returns the key that encrypts the database's secrets.
    pub fn key(&self) -> &SecretKey {
        &self.0.key
    }

    /// Returns the settings.
    pub fn settings(&self) -> &ServiceSettings {
        &self.0.settings
    }

    /// Returns the caches of assets, and the workers of images.
    pub(crate) fn assets(&self) -> &AssetResources {
        &self.0.assets
    }

    /// Returns the HTTP client of webhooks.
    pub(crate) fn sender(&self) -> &Arc<WebhookSender> {
        &self.0.sender
    }

    /// Returns the mailer, if this process sends mails.
    pub fn mailer(&self) -> Option<Arc<Mailer>> {
        self.0.mailer.clone()
    }

    /// Returns the bound on log lines about failing webhooks.
    pub(crate) fn failing_webhooks(&self) -> &LogLimit<WebhookId> {
        &self.0.failing_webhooks
    }

    /// Returns the cache of tags and members.
    pub(crate) fn references(&self) -> &ReferenceCache {
        &self.0.references
    }

    /// Returns the counter of requests with rejected credentials.
    pub fn rejected_credentials(&self) -> &RejectedCredentialsCounter {
        &self.0.rejected_credentials
    }

    /// Notifies workers and streams that the service stops.
    pub fn stop(&self) {
        self.0.stopping.send_replace(true);
    }

    /// Returns a receiver that becomes true when the service stops.
    pub fn stopping(&self) -> watch::Receiver<bool> {
        self.0.stopping.subscribe()
    }
}
