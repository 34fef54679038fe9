//! `galley check`

use std::path::Path;
use std::process::ExitCode;

use galley_server::Environment;
use galley_storage::{DatabaseUrl, Error as StorageError, Role, Tx, workspaces};

use crate::out::say;
use crate::settings::Settings;
use crate::{key, store};

/// What was found: fine, or what is wrong and what to do about it.
pub(crate) type Finding = Result<String, String>;

pub(crate) async fn run(settings: &Settings) -> anyhow::Result<ExitCode> {
    let (database, key) = database(settings).await;
    let findings = [
        ("settings", read(settings)),
        ("data directory", data_dir(&settings.data_dir.value)),
        ("database", database),
        ("key", key),
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

/// Whether the directory is there, and its owner's alone.
pub(crate) fn data_dir(path: &Path) -> Finding {
    let shown = path.display();
    match std::fs::metadata(path) {
        Err(_) => Ok(format!("{shown} is not there yet; the first start makes it")),
        Ok(found) if !found.is_dir() => Err(format!("{shown} is not a directory: move it away")),
        #[cfg(unix)]
        Ok(found) if std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o077 != 0 => {
            Err(format!("{shown} is open to other users: chmod 700 {shown}"))
        }
        Ok(_) => Ok(shown.to_string()),
    }
}

/// Whether the settings that are read in the end are right.
fn read(settings: &Settings) -> Finding {
    let told = |error: anyhow::Error| format!("{error:#}");
    settings.cors_origins().map_err(told)?;
    settings.webhook_addresses(settings.listen.value).map_err(told)?;
    Ok("read".to_owned())
}

/// The database, and the key that its secrets are encrypted with.
async fn database(settings: &Settings) -> (Finding, Finding) {
    if let Ok(DatabaseUrl::Sqlite(path)) = settings.database()
        && !path.exists()
    {
        let later = |what: &str| Ok(format!("{what}made at the first start"));
        return (later("SQLite, "), later(""));
    }
    let environment = Environment::default();
    let database = match store::open(settings, &environment, Role::Command).await {
        Ok(database) => database,
        Err(error) => {
            return (Err(format!("{error:#}")), Err("unknown without the database".to_owned()));
        }
    };
    let read = async |tx: &Tx<'_>| workspaces::list(tx).await;
    let known = database.read::<_, StorageError, _>("workspaces.list", read).await;
    let key = key::check(settings, &database).await;
    let engine = database.engine();
    database.close().await;
    let found = match known.as_deref() {
        Ok([]) => Ok(format!("{engine}; the first start makes a workspace")),
        Ok([(workspace, _)]) => Ok(format!("{engine}, with the workspace {workspace}")),
        Ok(several) => Ok(format!("{engine}, with {} workspaces", several.len())),
        Err(error) => Err(format!("{engine}: {error}")),
    };
    (found, key)
}

async fn address(settings: &Settings) -> Finding {
    let address = settings.listen.value;
    match tokio::net::TcpListener::bind(address).await {
        Ok(_) => Ok(format!("{address} is free")),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
            Ok(format!("{address} is in use: by a running galley, or choose another by --listen"))
        }
        Err(error) => Err(format!("{address}: {error}: choose another by --listen")),
    }
}
