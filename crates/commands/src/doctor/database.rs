//! Checks of the database, and of what it contains: the key, the clock and webhooks.

use std::path::Path;

use galley_application::Environment;
use galley_domain::Timestamp;
use galley_storage::{
    Database, DatabaseUrl, Error as StorageError, Inspection, ProcessRole, Tx, check_standby,
    webhooks, workspaces,
};
use indicatif::HumanBytes;

use super::finding::Finding;
use crate::settings::Settings;
use crate::{key, paths, store};

/// The maximum number of failing webhooks to name.
const FAILING_WEBHOOKS_LIMIT: i64 = 10;

/// The difference from the database's clock that is a warning, in milliseconds.
const CLOCK_WARNING: i64 = 2_000;

/// The difference that is a failure: receivers reject signatures of webhooks that are five minutes
/// old, and sign-in links expire early or late.
const CLOCK_LIMIT: i64 = 60_000;

/// The findings that need the database.
pub(super) struct DatabaseFindings {
    pub(super) database: Finding,
    pub(super) clock: Finding,
    pub(super) key: Finding,
    pub(super) webhooks: Finding,
    /// The size of the data in bytes.
    pub(super) bytes: Option<u64>,
}

impl DatabaseFindings {
    /// Returns the findings if the database itself can't be used.
    fn without(database: Finding) -> Self {
        let unknown = Finding::unknown;
        Self { database, clock: unknown(), key: unknown(), webhooks: unknown(), bytes: None }
    }
}

pub(super) async fn check(settings: &Settings) -> DatabaseFindings {
    let url = match settings.database() {
        Ok(url) => url,
        Err(error) => return DatabaseFindings::without(Finding::failure(format!("{error:#}"))),
    };
    if let DatabaseUrl::Sqlite(path) = &url
        && !matches!(path.try_exists(), Ok(true))
    {
        if let Some(problem) = missing(settings, path) {
            return DatabaseFindings::without(problem);
        }
        return DatabaseFindings {
            database: Finding::ok("SQLite, created at the first start"),
            clock: Finding::ok("not compared, as there is no event yet"),
            key: key::check_unused(settings).into(),
            webhooks: Finding::ok("none yet"),
            bytes: Some(0),
        };
    }
    let environment = Environment::default();
    let options = store::options(url, settings, &environment, ProcessRole::Command);
    let inspection = match Inspection::of(&options).await {
        Ok(inspection) => inspection,
        Err(error) => {
            let problem = store::explain(&options.url, &error);
            return DatabaseFindings::without(Finding::failure(format!("{problem:#}")));
        }
    };
    let clock = clock(&inspection, environment.now());
    let bytes = Some(inspection.bytes);
    if inspection.schema > 0 && !inspection.pending.is_empty() {
        // To open the database would change its schema.
        let database = Finding::warning(format!(
            "{}; the next start of this program applies {} migrations: see `galley upgrade --check`",
            inspection.engine,
            inspection.pending.len(),
        ));
        let later = || Finding::ok("checked after the upgrade");
        return DatabaseFindings { database, clock, key: later(), webhooks: later(), bytes };
    }
    if inspection.schema == 0 {
        let database = with_warnings(&inspection, "empty; the first start creates a workspace");
        let key = match key::check_given(settings) {
            Ok(()) => Finding::ok("not registered in the database yet"),
            Err(error) => Finding::failure(format!("{error:#}")),
        };
        let webhooks = Finding::ok("none yet");
        return DatabaseFindings { database, clock, key, webhooks, bytes };
    }
    let database = match Database::open(options.clone()).await {
        Ok(database) => database,
        Err(error) => return DatabaseFindings::without(Finding::failure(error.to_string())),
    };
    let mut found = workspaces(&database, &inspection).await;
    if let Some(url) = &settings.database_read_url
        && let Err(error) = check_standby(url, &options).await
    {
        found = Finding::failure(format!("database-read-url can't be used: {error}: correct it"));
    }
    let findings = DatabaseFindings {
        database: found,
        clock,
        key: key::check(settings, &database).await.into(),
        webhooks: webhooks(&database).await,
        bytes,
    };
    database.close().await;
    findings
}

/// Returns the finding about a SQLite file that can't be seen, or that was there before.
fn missing(settings: &Settings, path: &Path) -> Option<Finding> {
    let shown = path.display();
    if let Err(error) = path.try_exists() {
        return Some(Finding::failure(format!("{shown}: {error}: run as the service's user")));
    }
    let is_known = ["galley.lock", paths::ASSETS];
    let rest = is_known.iter().find(|name| settings.data_dir.join(name).exists())?;
    Some(Finding::failure(format!(
        "{shown} is missing, but {rest} is there: restore the database, or move the data directory \
         away for a new one"
    )))
}

/// Returns the finding about a database in this state.
fn with_warnings(inspection: &Inspection, state: &str) -> Finding {
    let found = format!("{}, {}, {state}", inspection.engine, HumanBytes(inspection.bytes));
    match &inspection.warnings[..] {
        [] => Finding::ok(found),
        warnings => Finding::warning(format!("{found}; {}", warnings.join("; "))),
    }
}

async fn workspaces(database: &Database, inspection: &Inspection) -> Finding {
    let read = async |tx: &Tx<'_>| workspaces::list(tx).await;
    let known = database.read::<_, StorageError, _>("workspaces.list", read).await;
    let state = match known.as_deref() {
        Ok([]) => "without a workspace: the first start creates one".to_owned(),
        Ok([(workspace, _)]) => format!("with the workspace {workspace}"),
        Ok(several) => format!("with {} workspaces", several.len()),
        Err(error) => return Finding::failure(format!("{}: {error}", inspection.engine)),
    };
    with_warnings(inspection, &state)
}

/// Compares this machine's clock with the database's, and with the time of the last event.
fn clock(inspection: &Inspection, now: Timestamp) -> Finding {
    let correction = "correct it, and keep it correct with NTP (timedatectl set-ntp true)";
    if let Some(clock) = inspection.clock {
        let ahead = now.ms() - clock.ms();
        if ahead.abs() > CLOCK_WARNING {
            let side = if ahead > 0 { "ahead of" } else { "behind" };
            let message = format!(
                "this machine's is {} s {side} the database's: {correction}",
                ahead.abs() / 1_000
            );
            let is_severe = ahead.abs() > CLOCK_LIMIT;
            return if is_severe { Finding::failure(message) } else { Finding::warning(message) };
        }
    }
    match inspection.last_event {
        Some(last) if last.ms() - now.ms() > CLOCK_WARNING => Finding::failure(format!(
            "this machine's time is {now}, before the last event at {last}: {correction}"
        )),
        _ => Finding::ok(now.to_string()),
    }
}

/// Checks for webhooks that fail, or that were disabled because of failures.
async fn webhooks(database: &Database) -> Finding {
    let read = async |tx: &Tx<'_>| webhooks::list_failing(tx, FAILING_WEBHOOKS_LIMIT).await;
    let failing = database.read::<_, StorageError, _>("webhooks.list_failing", read).await;
    let failing = match failing {
        Ok(failing) => failing,
        Err(error) => return Finding::failure(error.to_string()),
    };
    if failing.is_empty() {
        return Finding::ok("none is failing");
    }
    let messages: Vec<String> = failing
        .iter()
        .map(|(id, name, reason, since)| match (reason, since) {
            (Some(reason), _) => format!("{name} ({id}) is disabled: {}", reason.as_str()),
            (None, Some(since)) => format!("{name} ({id}) has failed since {since}"),
            (None, None) => format!("{name} ({id})"),
        })
        .collect();
    Finding::warning(format!(
        "{}; GET /webhooks/deliveries?webhookId=… states the errors, and PUT /webhooks with \
         \"enabled\":true sends paused deliveries",
        messages.join("; ")
    ))
}
