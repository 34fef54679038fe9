//! Opens the database, and finds the workspace of a command.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use galley_application::{Environment, Error};
use galley_domain::WorkspaceId;
use galley_storage::{
    Database, DatabaseUrl, Error as StorageError, Options, ProcessRole, Tx, workspaces,
};

use crate::private_files;
use crate::settings::Settings;
use crate::version::VERSION;

/// The time that a server's write waits for its turn before it fails and its client must retry.
const WRITE_WAIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Opens the database of the settings for a command. Fails if it doesn't exist.
pub(crate) async fn open_existing(
    settings: &Settings,
    environment: &Environment,
) -> anyhow::Result<Database> {
    if let DatabaseUrl::Sqlite(path) = settings.database()?
        && !path.exists()
    {
        bail!(
            "the database {} does not exist: set its directory with --data-dir, or create one with \
             `galley init` or by starting the server",
            path.display()
        );
    }
    open(settings, environment, ProcessRole::Command).await
}

/// Opens the database of the settings. Creates it and the data directory if they don't exist.
pub(crate) async fn open(
    settings: &Settings,
    environment: &Environment,
    role: ProcessRole,
) -> anyhow::Result<Database> {
    make_data_dir(&settings.data_dir)?;
    open_url(settings.database()?, settings, environment, role).await
}

/// Returns the options to open a database, from the settings.
pub(crate) fn options(
    url: DatabaseUrl,
    settings: &Settings,
    environment: &Environment,
    role: ProcessRole,
) -> Options {
    Options {
        url,
        replica_url: settings.database_read_url.clone().filter(|_| role == ProcessRole::Server),
        role,
        program_version: VERSION,
        now: environment.now(),
        connections: settings.database_connections,
        write_timeout: WRITE_WAIT_TIMEOUT,
        statement_log: None,
    }
}

/// Opens a database that may differ from the one of the settings.
pub(crate) async fn open_url(
    url: DatabaseUrl,
    settings: &Settings,
    environment: &Environment,
    role: ProcessRole,
) -> anyhow::Result<Database> {
    let options = options(url, settings, environment, role);
    Database::open(options.clone()).await.map_err(|error| explain(&options.url, &error))
}

/// Returns the error of opening a database, with its remedy.
pub(crate) fn explain(url: &DatabaseUrl, error: &StorageError) -> anyhow::Error {
    let hint = if error.to_string().contains("TLS") {
        ": set SSL_CERT_FILE to the certificate authority's file, or add sslmode=disable to the URL"
    } else {
        ""
    };
    anyhow::anyhow!("the database {url:?} can't be opened: {error}{hint}")
}

/// Creates the data directory, with access only for its owner.
pub(crate) fn make_data_dir(path: &Path) -> anyhow::Result<()> {
    private_files::create_directory(path)
        .with_context(|| format!("the data directory {} can't be created", path.display()))
}

/// Returns the workspace with this id, or the only one.
pub(crate) async fn workspace(
    database: &Database,
    id: Option<&str>,
) -> anyhow::Result<WorkspaceId> {
    let read = async |tx: &Tx<'_>| Ok::<_, Error>(workspaces::list(tx).await?);
    let known = database.read("workspaces.list", read).await?;
    choose(&known, id)
}

fn choose(known: &[(WorkspaceId, String)], id: Option<&str>) -> anyhow::Result<WorkspaceId> {
    if let Some(id) = id {
        let named = known.iter().find(|(known, _)| known.to_string() == id);
        return match named {
            Some((workspace, _)) => Ok(*workspace),
            None => bail!("the workspace {id} does not exist"),
        };
    }
    match known {
        [] => bail!("the database has no workspace yet: run `galley init` or start the server"),
        [(workspace, _)] => Ok(*workspace),
        several => {
            let list: Vec<_> = several.iter().map(|(id, name)| format!("{id} ({name})")).collect();
            bail!("there are several workspaces: select one with --workspace: {}", list.join(", "))
        }
    }
}
