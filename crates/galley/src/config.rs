//! `galley config`

use std::fmt::Display;

use galley_storage::DatabaseUrl;

use crate::out::say;
use crate::settings::{Setting, SettingSource, Settings};

pub(crate) fn run(settings: &Settings) -> anyhow::Result<()> {
    let database = format!("{:?}", settings.database()?);
    match &settings.file {
        Some(path) => say!("# with {}", path.display()),
        None => say!("# without a galley.toml"),
    }
    print("listen", &settings.listen, settings.listen.value);
    print("data-dir", &settings.data_dir, settings.data_dir.value.display());
    print("database-url", &settings.database_url, database);
    let read_url = settings.database_read_url.value.as_ref().map_or("none", |_| "postgres://…");
    print("database-read-url", &settings.database_read_url, read_url);
    print(
        "database-connections",
        &settings.database_connections,
        settings.database_connections.value,
    );
    print("public-url", &settings.public_url, settings.public_url(settings.listen.value));
    let metrics =
        settings.metrics_addr.value.map_or_else(String::new, |address| address.to_string());
    print("metrics-addr", &settings.metrics_addr, metrics);
    print("log", &settings.log, &settings.log.value);
    print("body-size-limit", &settings.body_size_limit, settings.body_size_limit.value);
    print("header-size-limit", &settings.header_size_limit, settings.header_size_limit.value);
    print("receive-timeout", &settings.receive_timeout, settings.receive_timeout.value);
    print("shutdown-delay", &settings.shutdown_delay, settings.shutdown_delay.value);
    print("content-size-limit", &settings.content_size_limit, settings.content_size_limit.value);
    print("response-size-limit", &settings.response_size_limit, settings.response_size_limit.value);
    settings.cors_origins()?;
    print("cors-origins", &settings.cors_origins, &settings.cors_origins.value);
    print("response-cache-size", &settings.response_cache_size, settings.response_cache_size.value);
    print("rate-limit", &settings.rate_limit, settings.rate_limit.value);
    print("invites-per-hour", &settings.invites_per_hour, settings.invites_per_hour.value);
    settings.mailer()?;
    // The URL may contain a password.
    let smtp_url =
        if settings.smtp_url.value.is_some() { "given" } else { "none: mails are stored as files" };
    print("smtp-url", &settings.smtp_url, smtp_url);
    print(
        "mail-from",
        &settings.mail_from,
        settings.mail_from.value.as_deref().unwrap_or_default(),
    );
    settings.webhook_addresses(settings.listen.value)?;
    print("webhooks-allow", &settings.webhooks_allow, &settings.webhooks_allow.value);
    let key = match (&settings.key.value, settings.database()?) {
        (Some(_), _) => "given",
        (None, DatabaseUrl::Sqlite(_)) => "galley.key in the data directory",
        (None, DatabaseUrl::Postgres(_)) => "missing",
    };
    print("key", &settings.key, key);
    Ok(())
}

fn print<T>(name: &str, setting: &Setting<T>, shown: impl Display) {
    let source = match setting.source {
        SettingSource::Default => "default",
        SettingSource::File => "file",
        SettingSource::Command => "variable or flag",
    };
    say!("{name:<22}{:<44}# {source}", shown.to_string());
}
