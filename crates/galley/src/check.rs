//! `galley check`

use std::path::Path;
use std::process::ExitCode;

use galley_server::Environment;
use galley_storage::Role;

use crate::settings::Settings;
use crate::store;

/// What was found: fine, or what is wrong and what to do about it.
pub(crate) type Finding = Result<String, String>;

pub(crate) async fn run(settings: &Settings) -> anyhow::Result<ExitCode> {
    let findings = [
        ("settings", Ok("read".to_owned())),
        ("data directory", data_dir(&settings.data_dir.value)),
        ("database", database(settings).await),
        ("address", address(settings).await),
    ];
    let mut code = ExitCode::SUCCESS;
    for (what, finding) in findings {
        match finding {
            Ok(text) => println!("ok    {what}: {text}"),
            Err(text) => {
                println!("FAIL  {what}: {text}");
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

async fn database(settings: &Settings) -> Finding {
    if settings.database_url.value.is_none() && !settings.data_dir.value.exists() {
        return Ok("SQLite, made at the first start".to_owned());
    }
    let environment = Environment::default();
    let opened = store::open(settings, &environment, Role::Command).await;
    let database = opened.map_err(|error| format!("{error:#}"))?;
    let workspace = store::workspace(&database, None).await;
    database.close().await;
    match workspace {
        Ok(workspace) => Ok(format!("{}, with the workspace {workspace}", database.engine())),
        Err(error) => Ok(format!("{}; {error:#}", database.engine())),
    }
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
