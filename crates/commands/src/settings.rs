//! Settings from defaults, `galley.toml`, `GALLEY_*` variables and flags, each overriding the
//! previous ones.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use galley_api_types::setting::SettingSource;
use galley_application::{AssetSettings, default_limits};
use galley_assets::{AssetStore, BucketCredentials, StoreLocation};
use galley_domain::address_policy::{AddressPolicy, IpNet};
use galley_domain::revision_retention::RevisionRetention;
use galley_domain::text::WebOrigin;
use galley_domain::trash;
use galley_mail::{FromAddress, Mailer, Outbox, Smtp};
use galley_openid_connect::{Provider, ProviderSettings};
use galley_storage::DatabaseUrl;

/// The help heading of the settings.
pub const HEADING: &str = "Settings";

/// The settings. Some are secrets.
#[derive(Args)]
#[command(next_help_heading = HEADING)]
pub struct Settings {
    /// Read settings from this file
    #[arg(long, global = true, env = "GALLEY_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Listen on this address
    #[arg(long, global = true, env = "GALLEY_LISTEN", value_name = "ADDRESS")]
    #[arg(value_parser = parse_address, default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// Keep the SQLite database and other files in this directory
    #[arg(long, global = true, env = "GALLEY_DATA_DIR", value_name = "DIR")]
    #[arg(default_value = "galley-data")]
    pub data_dir: PathBuf,
    /// Use this PostgreSQL database: postgres://… [default: SQLite in the data directory]
    #[arg(long, global = true, env = "GALLEY_DATABASE_URL", value_name = "URL")]
    #[arg(hide_env_values = true, value_parser = text())]
    pub database_url: Option<String>,
    /// Send reads that clients allow to be stale to these replicas: postgres://… [default: none]
    #[arg(long, global = true, env = "GALLEY_DATABASE_READ_URL", value_name = "URL")]
    #[arg(hide_env_values = true, value_parser = text())]
    pub database_read_url: Option<String>,
    /// Open this many connections to PostgreSQL, or use as many threads for heavy reads on SQLite
    #[arg(long, global = true, env = "GALLEY_DATABASE_CONNECTIONS", value_name = "COUNT")]
    #[arg(default_value_t = 8)]
    pub database_connections: usize,
    /// Set the address at which clients reach the service [default: http:// and the listen address]
    #[arg(long, global = true, env = "GALLEY_PUBLIC_URL", value_name = "URL")]
    #[arg(value_parser = text())]
    pub(crate) public_url: Option<String>,
    /// Let people sign in over plain http at loopback addresses only, or always
    #[arg(long, global = true, env = "GALLEY_SIGN_IN_OVER_HTTP", value_name = "ADDRESSES")]
    #[arg(value_parser = ["loopback", "always"], default_value = "loopback")]
    sign_in_over_http: String,
    /// Let people sign in with this identity provider (OpenID Connect), named by its issuer URL
    /// [default: none, people sign in by mail]
    #[arg(long, global = true, env = "GALLEY_OPENID_CONNECT_ISSUER", value_name = "URL")]
    #[arg(value_parser = text())]
    openid_connect_issuer: Option<String>,
    /// Use this client identifier at the identity provider
    #[arg(long, global = true, env = "GALLEY_OPENID_CONNECT_CLIENT_ID", value_name = "ID")]
    #[arg(value_parser = text())]
    openid_connect_client_id: Option<String>,
    /// Use this client secret at the identity provider [default: none, for a public client]
    #[arg(long, global = true, env = "GALLEY_OPENID_CONNECT_CLIENT_SECRET", value_name = "SECRET")]
    #[arg(hide_env_values = true, value_parser = text())]
    openid_connect_client_secret: Option<String>,
    /// Name the identity provider on the page to sign in [default: its host]
    #[arg(long, global = true, env = "GALLEY_OPENID_CONNECT_NAME", value_name = "NAME")]
    #[arg(value_parser = text())]
    openid_connect_name: Option<String>,
    /// Serve /metrics on this address [default: none]
    #[arg(long, global = true, env = "GALLEY_METRICS_ADDR", value_name = "ADDRESS")]
    #[arg(value_parser = parse_address)]
    pub metrics_addr: Option<SocketAddr>,
    /// Log at this level, or at levels by module
    #[arg(long, global = true, env = "GALLEY_LOG", value_name = "FILTER")]
    #[arg(value_parser = text(), default_value = "info")]
    pub log: String,
    /// Log every request
    #[arg(long, global = true, env = "GALLEY_ACCESS_LOG", value_name = "ON|OFF")]
    #[arg(value_parser = ["on", "off"], default_value = "off")]
    access_log: String,
    /// Send traces to this OpenTelemetry collector, by OTLP over HTTP, such as
    /// http://127.0.0.1:4318 [default: none]
    #[arg(long, global = true, env = "GALLEY_OTLP_ENDPOINT", value_name = "URL")]
    #[arg(value_parser = text())]
    pub otlp_endpoint: Option<String>,
    /// Limit a request's body to this many bytes
    #[arg(long, global = true, env = "GALLEY_BODY_SIZE_LIMIT", value_name = "BYTES")]
    #[arg(default_value_t = default_limits::BODY_SIZE)]
    pub body_size_limit: usize,
    /// Limit a request's header to this many bytes
    #[arg(long, global = true, env = "GALLEY_HEADER_SIZE_LIMIT", value_name = "BYTES")]
    #[arg(default_value_t = default_limits::HEADER_SIZE)]
    pub header_size_limit: usize,
    /// Time out clients that take longer than this many seconds to send a request's header or body,
    /// or to receive more of a response
    #[arg(long, global = true, env = "GALLEY_RECEIVE_TIMEOUT", value_name = "SECONDS")]
    #[arg(default_value_t = default_limits::RECEIVE_TIMEOUT_SECONDS)]
    pub receive_timeout: u64,
    /// Keep serving for this many seconds after a stop signal, while /readyz reports the stop to
    /// load balancers
    #[arg(long, global = true, env = "GALLEY_SHUTDOWN_DELAY", value_name = "SECONDS")]
    #[arg(default_value_t = 0)]
    pub shutdown_delay: u64,
    /// Limit a piece's HTML content to this many bytes
    #[arg(long, global = true, env = "GALLEY_CONTENT_SIZE_LIMIT", value_name = "BYTES")]
    #[arg(default_value_t = default_limits::CONTENT_SIZE)]
    pub content_size_limit: usize,
    /// Limit a response to this many bytes, and all unsent responses together to eight times as
    /// many
    #[arg(long, global = true, env = "GALLEY_RESPONSE_SIZE_LIMIT", value_name = "BYTES")]
    #[arg(default_value_t = default_limits::RESPONSE_SIZE)]
    pub response_size_limit: usize,
    /// Reject requests with unknown query parameters, or ignore these parameters
    #[arg(long, global = true, env = "GALLEY_UNKNOWN_PARAMETERS", value_name = "HANDLING")]
    #[arg(value_parser = ["reject", "ignore"], default_value = "reject")]
    unknown_parameters: String,
    /// Allow browser scripts of these origins (CORS), separated by commas [default: none]
    #[arg(long, global = true, env = "GALLEY_CORS_ORIGINS", value_name = "ORIGINS")]
    #[arg(default_value = "", hide_default_value = true)]
    cors_origins: String,
    /// Limit the response cache to this many MiB; 0 disables it [default: a tenth of the memory of
    /// the machine or container, from 64 to 1024]
    #[arg(long, global = true, env = "GALLEY_RESPONSE_CACHE_SIZE", value_name = "MIB")]
    #[arg(default_value_t = default_limits::response_cache_mib(), hide_default_value = true)]
    pub response_cache_size: u32,
    /// Limit a token to this many requests per minute; 0 for unlimited
    #[arg(long, global = true, env = "GALLEY_RATE_LIMIT", value_name = "COUNT")]
    #[arg(default_value_t = 0)]
    pub rate_limit: u32,
    /// Keep all revisions of pieces for this many days
    #[arg(long, global = true, env = "GALLEY_REVISION_RETENTION", value_name = "DAYS")]
    #[arg(default_value_t = RevisionRetention::default().all_days)]
    revision_retention: u32,
    /// Keep the last revision of each day for this many days
    #[arg(long, global = true, env = "GALLEY_REVISION_RETENTION_DAILY", value_name = "DAYS")]
    #[arg(default_value_t = RevisionRetention::default().daily_days)]
    revision_retention_daily: u32,
    /// Keep deleted pieces and groups for this many days; 0 to delete them at once
    #[arg(long, global = true, env = "GALLEY_TRASH_RETENTION", value_name = "DAYS")]
    #[arg(default_value_t = trash::RETENTION_DAYS)]
    pub trash_retention: u32,
    /// Keep the files of assets in this folder, or in a bucket: s3://bucket/prefix, with
    /// ?endpoint=URL&region=NAME for services besides AWS [default: assets in the data directory]
    #[arg(long, global = true, env = "GALLEY_ASSET_STORE_URL", value_name = "URL")]
    #[arg(value_parser = text())]
    asset_store_url: Option<String>,
    /// Use this key at the bucket of assets [default: AWS_ACCESS_KEY_ID]
    #[arg(long, global = true, env = "GALLEY_ASSET_STORE_ACCESS_KEY_ID", value_name = "ID")]
    #[arg(value_parser = text())]
    asset_store_access_key_id: Option<String>,
    /// Use this secret at the bucket of assets [default: AWS_SECRET_ACCESS_KEY]
    #[arg(
        long,
        global = true,
        env = "GALLEY_ASSET_STORE_SECRET_ACCESS_KEY",
        value_name = "SECRET"
    )]
    #[arg(hide_env_values = true, value_parser = text())]
    asset_store_secret_access_key: Option<String>,
    /// Give assets addresses below this URL, such as that of a CDN [default: the public URL]
    #[arg(long, global = true, env = "GALLEY_ASSET_BASE_URL", value_name = "URL")]
    #[arg(value_parser = text())]
    asset_base_url: Option<String>,
    /// Limit an asset to this many bytes
    #[arg(long, global = true, env = "GALLEY_ASSET_SIZE_LIMIT", value_name = "BYTES")]
    #[arg(default_value_t = default_limits::ASSET_SIZE)]
    asset_size_limit: u64,
    /// Limit the assets of a workspace to this many bytes together; 0 for unlimited
    #[arg(long, global = true, env = "GALLEY_ASSET_WORKSPACE_SIZE_LIMIT", value_name = "BYTES")]
    #[arg(default_value_t = 0)]
    asset_workspace_size_limit: u64,
    /// Limit a workspace to this many invites per hour; 0 for unlimited
    #[arg(long, global = true, env = "GALLEY_INVITES_PER_HOUR", value_name = "COUNT")]
    #[arg(default_value_t = default_limits::INVITES_PER_HOUR)]
    pub invites_per_hour: u32,
    /// Send mails through this server: smtps://user:password@host, or smtp://… [default: none,
    /// mails are written to files]
    #[arg(long, global = true, env = "GALLEY_SMTP_URL", value_name = "URL")]
    #[arg(hide_env_values = true, value_parser = text())]
    smtp_url: Option<String>,
    /// Send mails from this address, such as Galley <galley@example.org>
    #[arg(long, global = true, env = "GALLEY_MAIL_FROM", value_name = "ADDRESS")]
    #[arg(value_parser = text())]
    mail_from: Option<String>,
    /// Allow webhooks to call these networks besides public addresses (CIDR, separated by commas)
    #[arg(long, global = true, env = "GALLEY_WEBHOOKS_ALLOW", value_name = "NETWORKS")]
    #[arg(default_value = "", hide_default_value = true)]
    webhooks_allow: String,
    /// Take the address of a client from X-Forwarded-For if the request comes from a proxy in these
    /// networks (CIDR, separated by commas)
    #[arg(long, global = true, env = "GALLEY_TRUSTED_PROXIES", value_name = "NETWORKS")]
    #[arg(default_value = "", hide_default_value = true)]
    trusted_proxies: String,
    /// Encrypt secrets with this key: 32 bytes in base 64 [default on SQLite: a file]
    #[arg(long, global = true, env = "GALLEY_KEY", value_name = "KEY")]
    #[arg(hide_env_values = true, value_parser = text())]
    pub key: Option<String>,
    /// Use this text as the first token, for an unattended first start
    #[arg(long, global = true, env = "GALLEY_INIT_TOKEN", value_name = "TOKEN")]
    #[arg(hide_env_values = true, value_parser = text())]
    pub init_token: Option<String>,
    /// The settings file, if one was read.
    #[arg(skip)]
    pub(crate) file: Option<PathBuf>,
    /// The effective settings as texts.
    #[arg(skip)]
    pub(crate) effective: Vec<EffectiveSetting>,
}

fn text() -> NonEmptyStringValueParser {
    NonEmptyStringValueParser::new()
}

fn is_postgres(url: &str) -> bool {
    url.starts_with("postgres://") || url.starts_with("postgresql://")
}

/// Parses the networks of a setting. A single address is a network, too.
fn networks(setting: &str, text: &str) -> anyhow::Result<Vec<IpNet>> {
    let read = |network: &str| {
        let one = network.parse::<IpAddr>().map(IpNet::from);
        one.or_else(|_| network.parse::<IpNet>())
            .with_context(|| format!("{setting}: {network:?} is not a network such as 10.1.0.0/16"))
    };
    text.split(',').map(str::trim).filter(|network| !network.is_empty()).map(read).collect()
}

fn parse_address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "must be an IP address and a port, such as 127.0.0.1:8080")
}

/// An effective setting and its source.
pub(crate) struct EffectiveSetting {
    pub(crate) name: String,
    /// The text of the value, if it is set or has a default.
    pub(crate) text: Option<String>,
    pub(crate) is_secret: bool,
    pub(crate) source: SettingSource,
}

/// Leaves out the variables of settings that are empty, because some tools pass unset variables on
/// as empty ones.
pub fn without_empty_variables(argument: clap::Arg) -> clap::Arg {
    let is_empty =
        argument.get_env().and_then(std::env::var_os).is_some_and(|text| text.is_empty());
    if is_empty { argument.env(None) } else { argument }
}

/// Opens a store of assets.
pub(crate) fn open_asset_store(location: &StoreLocation) -> anyhow::Result<AssetStore> {
    AssetStore::open(location)
        .with_context(|| format!("the store of assets can't be opened: {location}"))
}

impl Settings {
    /// Rejects values that no server could work with.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        for (name, value) in [
            ("database-connections", self.database_connections),
            ("body-size-limit", self.body_size_limit),
            ("content-size-limit", self.content_size_limit),
        ] {
            anyhow::ensure!(value > 0, "{name} must be at least 1");
        }
        // Every stored piece must fit into a response by itself.
        anyhow::ensure!(
            self.response_size_limit >= 32 << 20,
            "response-size-limit must be at least 33554432"
        );
        // The HTTP library rejects a lower limit.
        anyhow::ensure!(self.header_size_limit >= 8_192, "header-size-limit must be at least 8192");
        anyhow::ensure!(self.receive_timeout > 0, "receive-timeout must be at least 1");
        if let Some(url) = &self.database_read_url {
            anyhow::ensure!(is_postgres(url), "database-read-url must start with postgres://");
            anyhow::ensure!(
                self.database_url.is_some(),
                "database-read-url requires database-url: it names a replica of that database"
            );
        }
        for (name, text, example) in [
            ("public-url", &self.public_url, "https://galley.example.org"),
            ("otlp-endpoint", &self.otlp_endpoint, "http://127.0.0.1:4318"),
        ] {
            let Some(text) = text else { continue };
            let url = url::Url::parse(text).ok();
            let has_user = url
                .as_ref()
                .is_some_and(|url| !url.username().is_empty() || url.password().is_some());
            // Settings are shown to Admins and in diagnoses, so a message doesn't quote it.
            anyhow::ensure!(
                !has_user,
                "{name} must not contain a user or a password: the API and `galley config` show it"
            );
            let url = url.filter(|url| {
                matches!(url.scheme(), "http" | "https")
                    && url.query().is_none()
                    && url.fragment().is_none()
            });
            anyhow::ensure!(url.is_some(), "{name}: {text:?} is not a URL such as {example}");
            anyhow::ensure!(
                name == "public-url" || !text.trim_end_matches('/').ends_with("/v1/traces"),
                "{name}: leave /v1/traces out, as the server appends it: {example}"
            );
        }
        Ok(())
    }

    /// Returns the database's location.
    pub fn database(&self) -> anyhow::Result<DatabaseUrl> {
        match self.database_url.as_deref() {
            None => Ok(DatabaseUrl::Sqlite(self.data_dir.join(crate::paths::DATABASE))),
            Some(url) if is_postgres(url) => Ok(DatabaseUrl::Postgres(url.to_owned())),
            Some(_) => anyhow::bail!(
                "the database URL must start with postgres://; for SQLite omit it and set the data \
                 directory"
            ),
        }
    }

    /// Returns the time for which revisions are kept.
    pub fn revision_retention(&self) -> RevisionRetention {
        RevisionRetention {
            all_days: self.revision_retention,
            daily_days: self.revision_retention_daily,
        }
    }

    /// Returns true if every request is logged.
    pub fn has_access_log(&self) -> bool {
        self.access_log == "on"
    }

    /// Returns true if unknown query parameters are ignored.
    pub fn ignores_unknown_parameters(&self) -> bool {
        self.unknown_parameters == "ignore"
    }

    /// Returns true if people may sign in over plain http at any address.
    pub fn allows_sign_in_over_http(&self) -> bool {
        self.sign_in_over_http == "always"
    }

    /// Returns the URL at which the collector receives traces, by the standard path below an OTLP
    /// endpoint.
    pub fn traces_url(&self) -> Option<String> {
        let endpoint = self.otlp_endpoint.as_ref()?;
        Some(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
    }

    /// Returns the identity provider with which people may sign in, if the service is at
    /// `public_url`.
    pub fn identity_provider(&self, public_url: &str) -> anyhow::Result<Option<Provider>> {
        let Some(issuer) = self.openid_connect_issuer.clone() else {
            anyhow::ensure!(
                self.openid_connect_client_id.is_none(),
                "openid-connect-client-id requires openid-connect-issuer: set the provider's URL"
            );
            return Ok(None);
        };
        let client_id = self.openid_connect_client_id.clone().context(
            "openid-connect-issuer requires openid-connect-client-id: register the service at the \
             provider",
        )?;
        let host = url::Url::parse(&issuer).ok().and_then(|url| url.host_str().map(str::to_owned));
        let name = self.openid_connect_name.clone().or(host).unwrap_or_default();
        let client_secret = self.openid_connect_client_secret.clone();
        let settings = ProviderSettings { issuer, client_id, client_secret, name };
        let redirect = format!("{}/sign-in/callback", public_url.trim_end_matches('/'));
        Ok(Some(Provider::new(settings, redirect)?))
    }

    /// Returns the settings of assets, if the service is at `public_url`.
    pub fn assets(&self, public_url: &str) -> anyhow::Result<AssetSettings> {
        let base_url = self.asset_base_url.as_deref().unwrap_or(public_url).to_owned();
        let limit = self.asset_workspace_size_limit;
        Ok(AssetSettings {
            store: open_asset_store(&self.asset_store()?)?,
            base_url,
            size_limit: self.asset_size_limit,
            workspace_limit: (limit > 0).then_some(limit),
        })
    }

    /// Returns the store of assets.
    pub(crate) fn asset_store(&self) -> anyhow::Result<StoreLocation> {
        match &self.asset_store_url {
            Some(url) => {
                self.asset_store_at(url).with_context(|| format!("asset-store-url: {url:?}"))
            }
            None => Ok(StoreLocation::Folder(self.data_dir.join(crate::paths::ASSETS))),
        }
    }

    /// Returns the store of assets at this place, with the credentials of the settings.
    pub(crate) fn asset_store_at(&self, place: &str) -> anyhow::Result<StoreLocation> {
        let key = (&self.asset_store_access_key_id, &self.asset_store_secret_access_key);
        let credentials = match key {
            (Some(id), Some(secret)) => Some(BucketCredentials {
                access_key_id: id.clone(),
                secret_access_key: secret.clone(),
            }),
            (None, None) => None,
            _ => anyhow::bail!(
                "asset-store-access-key-id and asset-store-secret-access-key belong together: set both"
            ),
        };
        Ok(StoreLocation::parse(place, credentials)?)
    }

    /// Returns true if the store of assets is the one of the data directory.
    pub(crate) fn has_default_asset_store(&self) -> bool {
        self.asset_store_url.is_none()
    }

    /// Returns the URL below which the addresses of assets are.
    pub(crate) fn asset_base_url(&self) -> String {
        self.asset_base_url.clone().unwrap_or_else(|| self.public_url(self.listen))
    }

    /// Returns true if neither `public-url` nor `asset-base-url` is set.
    pub(crate) fn has_assumed_asset_base_url(&self) -> bool {
        self.asset_base_url.is_none() && self.public_url.is_none()
    }

    /// Returns the origins whose browser scripts are allowed.
    pub fn cors_origins(&self) -> anyhow::Result<Vec<WebOrigin>> {
        let origins = self.cors_origins.split(',').map(str::trim);
        let read = |origin: &str| {
            origin.parse().with_context(|| {
                format!("cors-origins: {origin:?} is not an origin such as https://example.org")
            })
        };
        origins.filter(|origin| !origin.is_empty()).map(read).collect()
    }

    /// Returns the addresses that webhooks may call, if the service listens at `address`.
    pub fn webhook_addresses(&self, address: SocketAddr) -> anyhow::Result<AddressPolicy> {
        let allowed = networks("webhooks-allow", &self.webhooks_allow)?;
        // Webhooks to loopback are allowed for trials, as long as no other machine can reach the
        // service.
        let tries_out = address.ip().is_loopback() && self.public_url.is_none();
        Ok(AddressPolicy { allowed, allows_loopback: tries_out })
    }

    /// Returns the addresses from which imports fetch images: public ones, and the networks that
    /// webhooks may call.
    pub(crate) fn fetch_addresses(&self) -> anyhow::Result<AddressPolicy> {
        let allowed = networks("webhooks-allow", &self.webhooks_allow)?;
        Ok(AddressPolicy { allowed, allows_loopback: false })
    }

    /// Returns the networks of proxies that state the addresses of clients.
    pub fn trusted_proxies(&self) -> anyhow::Result<Vec<IpNet>> {
        networks("trusted-proxies", &self.trusted_proxies)
    }

    /// Returns the mailer: an SMTP server, or an outbox of files.
    pub fn mailer(&self) -> anyhow::Result<Mailer> {
        let from = self.mail_from.as_deref();
        let Some(url) = self.smtp_url.as_deref() else {
            let from = FromAddress::parse(from.unwrap_or("Galley <galley@localhost>"));
            let from = from.context("mail-from")?;
            return Ok(Mailer::Outbox(Outbox::new(self.outbox(), from)));
        };
        let from = from.context(
            "smtp-url requires mail-from: set the sender, such as Galley <galley@example.org>",
        )?;
        let from = FromAddress::parse(from).context("mail-from")?;
        Ok(Mailer::Smtp(Smtp::parse(url, from).context("smtp-url")?))
    }

    /// Returns the directory for mails if there is no mail server.
    pub fn outbox(&self) -> PathBuf {
        self.data_dir.join("outbox")
    }

    /// Returns the service's address for clients, if it listens at `address`.
    pub fn public_url(&self, address: SocketAddr) -> String {
        self.public_url.clone().unwrap_or_else(|| format!("http://{address}"))
    }
}
