//! `galley check`

use std::path::Path;
use std::process::ExitCode;

use galley_application::Environment;
use galley_mail::Mailer;
use galley_storage::{
    Database, DatabaseUrl, Error as StorageError, ProcessRole, Tx, webhooks, workspaces,
};

use crate::out::say;
use crate::settings::Settings;
use crate::{key, private_files, store};

/// The result of one check: a description, or a problem with its remedy.
pub(crate) type CheckResult = Result<String, String>;

pub(crate) async fn run(settings: &Settings) -> anyhow::Result<ExitCode> {
    let DatabaseFindings { database, key, webhooks } = database(settings).await;
    let findings = [
        ("settings", read(settings)),
        ("data directory", data_dir(&settings.data_dir)),
        ("database", database),
        ("key", key),
        ("mail", mail(settings).await),
        ("webhooks", webhooks),
        ("address", address(settings).await),
    ];
    let mut code = ExitCode::SUCCESS;
    for (what, finding) in findings {
        match finding {
            Ok(text) => say!("ok    {what}: {text}"),
            Err(text) => {
                say!("FAIL  {what}: {text}");
                code = ExitCode::FAILURE;
            }
        }
    }
    Ok(code)
}

/// Checks that the data directory, if it exists, is a directory that only its owner can access.
pub(crate) fn data_dir(path: &Path) -> CheckResult {
    let shown = path.display();
    match std::fs::metadata(path) {
        Err(_) => Ok(format!("{shown} does not exist yet; the first start creates it")),
        Ok(found) if !found.is_dir() => Err(format!("{shown} is not a directory: move it away")),
        Ok(_) if private_files::is_open_to_others(path) => {
            Err(format!("{shown} is open to other users: chmod 700 {shown}"))
        }
        Ok(_) => Ok(shown.to_string()),
    }
}

/// Validates the settings that are parsed only when they are used.
fn read(settings: &Settings) -> CheckResult {
    let shown = |error: anyhow::Error| format!("{error:#}");
    settings.cors_origins().map_err(shown)?;
    settings.webhook_addresses(settings.listen).map_err(shown)?;
    settings.trusted_proxies().map_err(shown)?;
    Ok("read".to_owned())
}

/// The findings about the database, the key of its secrets, and the webhooks.
struct DatabaseFindings {
    database: CheckResult,
    key: CheckResult,
    webhooks: CheckResult,
}

async fn database(settings: &Settings) -> DatabaseFindings {
    if let Ok(DatabaseUrl::Sqlite(path)) = settings.database()
        && !path.exists()
    {
        return DatabaseFindings {
            database: Ok("SQLite, created at the first start".to_owned()),
            key: key::check_unused(settings),
            webhooks: Ok("none yet".to_owned()),
        };
    }
    let environment = Environment::default();
    let database = match store::open(settings, &environment, ProcessRole::Command).await {
        Ok(database) => database,
        Err(error) => {
            let unknown = || Err("unknown without the database".to_owned());
            return DatabaseFindings {
                database: Err(format!("{error:#}")),
                key: unknown(),
                webhooks: unknown(),
            };
        }
    };
    let read = async |tx: &Tx<'_>| workspaces::list(tx).await;
    let known = database.read::<_, StorageError, _>("workspaces.list", read).await;
    let key = key::check(settings, &database).await;
    let webhooks = webhooks(&database).await;
    let engine = database.engine();
    database.close().await;
    let found = match known.as_deref() {
        Ok([]) => Ok(format!("{engine}; the first start creates a workspace")),
        Ok([(workspace, _)]) => Ok(format!("{engine}, with the workspace {workspace}")),
        Ok(several) => Ok(format!("{engine}, with {} workspaces", several.len())),
        Err(error) => Err(format!("{engine}: {error}")),
    };
    DatabaseFindings { database: found, key, webhooks }
}

/// Checks that mails can be written to the outbox, or that the mail server accepts the login.
async fn mail(settings: &Settings) -> CheckResult {
    let shown = |error: anyhow::Error| format!("{error:#}");
    match settings.mailer().map_err(shown)? {
        Mailer::Outbox(_) => {
            let outbox = settings.outbox();
            let found = std::fs::metadata(&outbox);
            let is_link = outbox.is_symlink();
            if is_link
                || found
                    .as_ref()
                    .is_ok_and(|found| !found.is_dir() || found.permissions().readonly())
            {
                let shown = outbox.display();
                return Err(format!("{shown} is not a writable directory: move it away"));
            }
            Ok(format!("stored in {}; set smtp-url and mail-from to send mails", outbox.display()))
        }
        Mailer::Smtp(smtp) => match smtp.check().await {
            Ok(()) => Ok(format!("{smtp:?}")),
            Err(error) => Err(format!("{smtp:?}: {error}: check the mail server and smtp-url")),
        },
    }
}

/// The maximum number of failing webhooks to name.
const FAILING_WEBHOOKS_LIMIT: i64 = 10;

/// Checks for webhooks that fail, or that were disabled because of failures.
async fn webhooks(database: &Database) -> CheckResult {
    let read = async |tx: &Tx<'_>| webhooks::list_failing(tx, FAILING_WEBHOOKS_LIMIT).await;
    let failing = database.read::<_, StorageError, _>("webhooks.list_failing", read).await;
    let failing = failing.map_err(|error| error.to_string())?;
    if failing.is_empty() {
        return Ok("none is failing".to_owned());
    }
    let messages: Vec<String> = failing
        .iter()
        .map(|(id, name, reason, since)| match (reason, since) {
            (Some(reason), _) => format!("{name} ({id}) is disabled: {}", reason.as_str()),
            (None, Some(since)) => format!("{name} ({id}) has failed since {since}"),
            (None, None) => format!("{name} ({id})"),
        })
        .collect();
    Err(format!(
        "{}; GET /webhooks/deliveries?webhookId=… states the errors, and PUT /webhooks with \
         \"enabled\":true sends paused deliveries",
        messages.join("; ")
    ))
}

async fn address(settings: &Settings) -> CheckResult {
    let address = settings.listen;
    match tokio::net::TcpListener::bind(address).await {
        Ok(_) => Ok(format!("{address} is free")),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => Ok(format!(
            "{address} is in use, maybe by a running galley; otherwise choose another with --listen"
        )),
        Err(error) => Err(format!("{address}: {error}: choose another with --listen")),
    }
}
