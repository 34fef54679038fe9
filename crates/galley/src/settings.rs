//! Settings from defaults, `galley.toml`, `GALLEY_*` variables and flags, each overriding the
//! previous ones.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use galley_domain::address_policy::{AddressPolicy, IpNet};
use galley_server::{HeaderValue, MailSender, Mailer, Outbox, Smtp, parse_origin};
use galley_storage::DatabaseUrl;
use serde::Deserialize;

/// The help heading of the settings.
pub(crate) const HEADING: &str = "Settings";

/// Settings as specified in flags, variables, or the file.
#[derive(Default, Args, Deserialize)]
#[command(next_help_heading = HEADING)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct SettingsArguments {
    /// Read settings from this file
    #[arg(long, global = true, env = "GALLEY_CONFIG", value_name = "FILE")]
    #[serde(skip)]
    config: Option<PathBuf>,
    /// Listen on this address [default: 127.0.0.1:8080]
    #[arg(long, global = true, env = "GALLEY_LISTEN", value_name = "ADDRESS")]
    #[arg(value_parser = parse_address)]
    listen: Option<SocketAddr>,
    /// Keep the SQLite database and other files in this directory [default: ./galley-data]
    #[arg(long, global = true, env = "GALLEY_DATA_DIR", value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Use this PostgreSQL database: postgres://… [default: SQLite in the data directory]
    #[arg(long, global = true, env = "GALLEY_DATABASE_URL", value_name = "URL")]
    #[arg(hide_env_values = true)]
    database_url: Option<String>,
    /// Send reads that clients allow to be stale to these replicas: postgres://… [default: none]
    #[arg(long, global = true, env = "GALLEY_DATABASE_READ_URL", value_name = "URL")]
    #[arg(hide_env_values = true)]
    database_read_url: Option<String>,
    /// Open this many connections to PostgreSQL, or use as many threads for heavy reads on SQLite
    /// [default: 8]
    #[arg(long, global = true, env = "GALLEY_DATABASE_CONNECTIONS", value_name = "COUNT")]
    database_connections: Option<usize>,
    /// Set the address at which clients reach the service [default: http:// and the listen address]
    #[arg(long, global = true, env = "GALLEY_PUBLIC_URL", value_name = "URL")]
    public_url: Option<String>,
    /// Serve /metrics on this address [default: none]
    #[arg(long, global = true, env = "GALLEY_METRICS_ADDR", value_name = "ADDRESS")]
    #[arg(value_parser = parse_address)]
    metrics_addr: Option<SocketAddr>,
    /// Log at this level, or at levels by module [default: info]
    #[arg(long, global = true, env = "GALLEY_LOG", value_name = "FILTER")]
    log: Option<String>,
    /// Limit a request's body to this many bytes [default: 8388608]
    #[arg(long, global = true, env = "GALLEY_BODY_SIZE_LIMIT", value_name = "BYTES")]
    body_size_limit: Option<usize>,
    /// Limit a request's header to this many bytes [default: 16384]
    #[arg(long, global = true, env = "GALLEY_HEADER_SIZE_LIMIT", value_name = "BYTES")]
    header_size_limit: Option<usize>,
    /// Time out clients that take longer than this many seconds to send a request's header or body,
    /// or to receive more of a response [default: 30]
    #[arg(long, global = true, env = "GALLEY_RECEIVE_TIMEOUT", value_name = "SECONDS")]
    receive_timeout: Option<u64>,
    /// Keep serving for this many seconds after a stop signal, while /readyz reports the stop to
    /// load balancers [default: 0]
    #[arg(long, global = true, env = "GALLEY_SHUTDOWN_DELAY", value_name = "SECONDS")]
    shutdown_delay: Option<u64>,
    /// Limit a piece's HTML content to this many bytes [default: 2097152]
    #[arg(long, global = true, env = "GALLEY_CONTENT_SIZE_LIMIT", value_name = "BYTES")]
    content_size_limit: Option<usize>,
    /// Limit a response to this many bytes, and all unsent responses together to eight times as
    /// many [default: 67108864]
    #[arg(long, global = true, env = "GALLEY_RESPONSE_SIZE_LIMIT", value_name = "BYTES")]
    response_size_limit: Option<usize>,
    /// Allow browser scripts of these origins (CORS), separated by commas [default: none]
    #[arg(long, global = true, env = "GALLEY_CORS_ORIGINS", value_name = "ORIGINS")]
    cors_origins: Option<String>,
    /// Limit the response cache to this many MiB; 0 disables it [default: 64]
    #[arg(long, global = true, env = "GALLEY_RESPONSE_CACHE_SIZE", value_name = "MIB")]
    response_cache_size: Option<u32>,
    /// Limit a token to this many requests per minute [default: 0, unlimited]
    #[arg(long, global = true, env = "GALLEY_RATE_LIMIT", value_name = "COUNT")]
    rate_limit: Option<u32>,
    /// Limit a workspace to this many invites per hour [default: 100]
    #[arg(long, global = true, env = "GALLEY_INVITES_PER_HOUR", value_name = "COUNT")]
    invites_per_hour: Option<u32>,
    /// Send mails through this server: smtps://user:password@host, or smtp://… [default: none,
    /// mails are written to files]
    #[arg(
        long,
        global = true,
        env = "GALLEY_SMTP_URL",
        value_name = "URL",
        hide_env_values = true
    )]
    smtp_url: Option<String>,
    /// Send mails from this address, such as Galley <galley@example.org>
    #[arg(long, global = true, env = "GALLEY_MAIL_FROM", value_name = "ADDRESS")]
    mail_from: Option<String>,
    /// Allow webhooks to call these networks besides public addresses (CIDR, separated by commas)
    #[arg(long, global = true, env = "GALLEY_WEBHOOKS_ALLOW", value_name = "NETWORKS")]
    webhooks_allow: Option<String>,
    /// Encrypt secrets with this key: 32 bytes in base 64 [default on SQLite: a file]
    #[arg(long, global = true, env = "GALLEY_KEY", value_name = "KEY", hide_env_values = true)]
    key: Option<String>,
    /// Use this text as the first token, for an unattended first start
    #[arg(long, global = true, env = "GALLEY_INIT_TOKEN", value_name = "TOKEN")]
    #[arg(hide_env_values = true)]
    #[serde(skip)]
    init_token: Option<String>,
}

fn is_postgres(url: &str) -> bool {
    url.starts_with("postgres://") || url.starts_with("postgresql://")
}

fn parse_address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "must be an IP address and a port, such as 127.0.0.1:8080")
}

/// An effective setting and its source.
#[derive(Debug, Clone)]
pub(crate) struct Setting<T> {
    pub(crate) value: T,
    pub(crate) source: SettingSource,
}

/// The source of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SettingSource {
    Default,
    File,
    /// A variable or a flag.
    Command,
}

/// The effective settings. Some are secrets.
pub(crate) struct Settings {
    pub(crate) file: Option<PathBuf>,
    pub(crate) listen: Setting<SocketAddr>,
    pub(crate) data_dir: Setting<PathBuf>,
    pub(crate) database_url: Setting<Option<String>>,
    pub(crate) database_read_url: Setting<Option<String>>,
    pub(crate) database_connections: Setting<usize>,
    pub(crate) public_url: Setting<Option<String>>,
    pub(crate) metrics_addr: Setting<Option<SocketAddr>>,
    pub(crate) log: Setting<String>,
    pub(crate) body_size_limit: Setting<usize>,
    pub(crate) header_size_limit: Setting<usize>,
    pub(crate) receive_timeout: Setting<u64>,
    pub(crate) shutdown_delay: Setting<u64>,
    pub(crate) content_size_limit: Setting<usize>,
    pub(crate) response_size_limit: Setting<usize>,
    pub(crate) cors_origins: Setting<String>,
    pub(crate) response_cache_size: Setting<u32>,
    pub(crate) rate_limit: Setting<u32>,
    pub(crate) invites_per_hour: Setting<u32>,
    pub(crate) smtp_url: Setting<Option<String>>,
    pub(crate) mail_from: Setting<Option<String>>,
    pub(crate) webhooks_allow: Setting<String>,
    pub(crate) key: Setting<Option<String>>,
    pub(crate) init_token: Option<String>,
}

/// The settings file that is read if it exists and no other is named.
const DEFAULT_FILE: &str = "galley.toml";

/// Merges the settings. An empty text counts as unset, because some tools pass unset variables on
/// as empty ones.
pub(crate) fn load(mut given: SettingsArguments) -> anyhow::Result<Settings> {
    let texts = [
        &mut given.database_url,
        &mut given.database_read_url,
        &mut given.public_url,
        &mut given.log,
        &mut given.cors_origins,
        &mut given.smtp_url,
        &mut given.mail_from,
        &mut given.webhooks_allow,
        &mut given.key,
        &mut given.init_token,
    ];
    for text in texts {
        text.take_if(|text| text.is_empty());
    }
    let file = match &given.config {
        Some(path) => Some(path.clone()),
        None => Some(PathBuf::from(DEFAULT_FILE)).filter(|path| path.exists()),
    };
    let in_file = match &file {
        Some(path) => read_file(path)?,
        None => SettingsArguments::default(),
    };
    let limits = galley_server::ServerLimits::default();
    let receive_timeout = limits.receive_timeout.as_secs();
    let settings = Settings {
        listen: pick(given.listen, in_file.listen, SocketAddr::from(([127, 0, 0, 1], 8080))),
        data_dir: pick(given.data_dir, in_file.data_dir, PathBuf::from("galley-data")),
        database_url: pick_optional(given.database_url, in_file.database_url),
        database_read_url: pick_optional(given.database_read_url, in_file.database_read_url),
        database_connections: pick(given.database_connections, in_file.database_connections, 8),
        public_url: pick_optional(given.public_url, in_file.public_url),
        metrics_addr: pick_optional(given.metrics_addr, in_file.metrics_addr),
        log: pick(given.log, in_file.log, "info".to_owned()),
        body_size_limit: pick(
            given.body_size_limit,
            in_file.body_size_limit,
            limits.body_size_limit,
        ),
        header_size_limit: pick(
            given.header_size_limit,
            in_file.header_size_limit,
            limits.header_size_limit,
        ),
        receive_timeout: pick(given.receive_timeout, in_file.receive_timeout, receive_timeout),
        shutdown_delay: pick(given.shutdown_delay, in_file.shutdown_delay, 0),
        content_size_limit: pick(
            given.content_size_limit,
            in_file.content_size_limit,
            limits.content_size_limit,
        ),
        response_size_limit: pick(
            given.response_size_limit,
            in_file.response_size_limit,
            limits.response_size_limit,
        ),
        cors_origins: pick(given.cors_origins, in_file.cors_origins, String::new()),
        response_cache_size: pick(given.response_cache_size, in_file.response_cache_size, 64),
        rate_limit: pick(given.rate_limit, in_file.rate_limit, 0),
        invites_per_hour: pick(
            given.invites_per_hour,
            in_file.invites_per_hour,
            limits.invites_per_hour,
        ),
        smtp_url: pick_optional(given.smtp_url, in_file.smtp_url),
        mail_from: pick_optional(given.mail_from, in_file.mail_from),
        webhooks_allow: pick(given.webhooks_allow, in_file.webhooks_allow, String::new()),
        key: pick_optional(given.key, in_file.key),
        init_token: given.init_token,
        file,
    };
    settings.check()?;
    Ok(settings)
}

fn read_file(path: &Path) -> anyhow::Result<SettingsArguments> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("the settings file {} can't be read", path.display()))?;
    toml::from_str(&text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        anyhow::anyhow!("{}:{line}: {}", path.display(), error.message())
    })
}

fn pick<T>(given: Option<T>, in_file: Option<T>, default: T) -> Setting<T> {
    match (given, in_file) {
        (Some(value), _) => Setting { value, source: SettingSource::Command },
        (None, Some(value)) => Setting { value, source: SettingSource::File },
        (None, None) => Setting { value: default, source: SettingSource::Default },
    }
}

fn pick_optional<T>(given: Option<T>, in_file: Option<T>) -> Setting<Option<T>> {
    pick(given.map(Some), in_file.map(Some), None)
}

impl Settings {
    /// Rejects values that no server could work with.
    fn check(&self) -> anyhow::Result<()> {
        for (name, value) in [
            ("database-connections", self.database_connections.value),
            ("body-size-limit", self.body_size_limit.value),
            ("content-size-limit", self.content_size_limit.value),
        ] {
            anyhow::ensure!(value > 0, "{name} must be at least 1");
        }
        // Every stored piece must fit into a response by itself.
        anyhow::ensure!(
            self.response_size_limit.value >= 32 << 20,
            "response-size-limit must be at least 33554432"
        );
        // The HTTP library rejects a lower limit.
        anyhow::ensure!(
            self.header_size_limit.value >= 8_192,
            "header-size-limit must be at least 8192"
        );
        anyhow::ensure!(self.receive_timeout.value > 0, "receive-timeout must be at least 1");
        if let Some(url) = &self.database_read_url.value {
            anyhow::ensure!(is_postgres(url), "database-read-url must start with postgres://");
            anyhow::ensure!(
                self.database_url.value.is_some(),
                "database-read-url requires database-url: it names a replica of that database"
            );
        }
        if let Some(text) = &self.public_url.value {
            let url = url::Url::parse(text).ok().filter(|url| {
                matches!(url.scheme(), "http" | "https")
                    && url.query().is_none()
                    && url.fragment().is_none()
            });
            anyhow::ensure!(
                url.is_some(),
                "public-url: {text:?} is not a URL such as https://galley.example.org"
            );
        }
        Ok(())
    }

    /// Returns the database's location.
    pub(crate) fn database(&self) -> anyhow::Result<DatabaseUrl> {
        match self.database_url.value.as_deref() {
            None => Ok(DatabaseUrl::Sqlite(self.data_dir.value.join(crate::paths::DATABASE))),
            Some(url) if is_postgres(url) => Ok(DatabaseUrl::Postgres(url.to_owned())),
            Some(_) => anyhow::bail!(
                "the database URL must start with postgres://; for SQLite omit it and set the data \
                 directory"
            ),
        }
    }

    /// Returns the origins whose browser scripts are allowed.
    pub(crate) fn cors_origins(&self) -> anyhow::Result<Vec<HeaderValue>> {
        let origins = self.cors_origins.value.split(',').map(str::trim);
        let read = |origin: &str| {
            parse_origin(origin).with_context(|| {
                format!("cors-origins: {origin:?} is not an origin such as https://example.org")
            })
        };
        origins.filter(|origin| !origin.is_empty()).map(read).collect()
    }

    /// Returns the addresses that webhooks may call, if the service listens at `address`.
    pub(crate) fn webhook_addresses(&self, address: SocketAddr) -> anyhow::Result<AddressPolicy> {
        let networks = self.webhooks_allow.value.split(',').map(str::trim);
        let read = |network: &str| {
            let one = network.parse::<IpAddr>().map(IpNet::from);
            one.or_else(|_| network.parse::<IpNet>()).with_context(|| {
                format!("webhooks-allow: {network:?} is not a network such as 10.1.0.0/16")
            })
        };
        let allowed = networks.filter(|network| !network.is_empty()).map(read);
        // Webhooks to loopback are allowed for trials, as long as no other machine can reach the
        // service.
        let tries_out = address.ip().is_loopback() && self.public_url.value.is_none();
        Ok(AddressPolicy {
            allowed: allowed.collect::<anyhow::Result<_>>()?,
            allows_loopback: tries_out,
        })
    }

    /// Returns the mailer: an SMTP server, or an outbox of files.
    pub(crate) fn mailer(&self) -> anyhow::Result<Mailer> {
        let from = self.mail_from.value.as_deref();
        let Some(url) = self.smtp_url.value.as_deref() else {
            let from = MailSender::parse(from.unwrap_or("Galley <galley@localhost>"));
            let from = from.context("mail-from")?;
            return Ok(Mailer::Outbox(Outbox::new(self.outbox(), from)));
        };
        let from = from.context(
            "smtp-url requires mail-from: set the sender, such as Galley <galley@example.org>",
        )?;
        let from = MailSender::parse(from).context("mail-from")?;
        Ok(Mailer::Smtp(Smtp::parse(url, from).context("smtp-url")?))
    }

    /// Returns the directory for mails if there is no mail server.
    pub(crate) fn outbox(&self) -> PathBuf {
        self.data_dir.value.join("outbox")
    }

    /// Returns the service's address for clients, if it listens at `address`.
    pub(crate) fn public_url(&self, address: SocketAddr) -> String {
        self.public_url.value.clone().unwrap_or_else(|| format!("http://{address}"))
    }
}
