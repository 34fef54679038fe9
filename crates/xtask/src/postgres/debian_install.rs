//! Debian's PostgreSQL server, installed as root without the database and the service that the
//! package adds.

use std::{fs, path::Path, process::Command};

use anyhow::{Context, Result, ensure};

/// The file in which Debian's packages look up if they are to create a database.
const SETTINGS: &str = "/etc/postgresql-common/createcluster.conf";
/// The template that Debian's packages copy to this file.
const SETTINGS_TEMPLATE: &str = "/usr/share/postgresql-common/createcluster.conf";

/// Returns true if an installation overwrites no existing settings.
pub(super) fn keeps_existing_settings() -> bool {
    !Path::new(SETTINGS).exists()
}

/// Installs the server's package and its dependencies.
pub(super) fn install() -> Result<()> {
    eprintln!("installing the package `postgresql` with apt-get");
    forbid_database()?;
    let installed = apt_get(&["install", "--yes", "--no-install-recommends", "postgresql"]);
    let installed = installed.or_else(|_| {
        // The lists of packages are missing, as in a new container, or name versions that no longer
        // exist.
        apt_get(&["update"])?;
        apt_get(&["install", "--yes", "--no-install-recommends", "postgresql"])
    });
    allow_database_again()?;
    installed
}

/// Prevents the package from creating a database in /var/lib and starting a server for it on port
/// 5432.
fn forbid_database() -> Result<()> {
    let directory = Path::new(SETTINGS).parent().expect("the path has a directory");
    fs::create_dir_all(directory)
        .and_then(|()| fs::write(SETTINGS, "create_main_cluster = false\n"))
        .with_context(|| format!("cannot write {SETTINGS}"))
}

/// Restores the packages' own settings, so that a later installation is an ordinary one.
fn allow_database_again() -> Result<()> {
    let restored = if Path::new(SETTINGS_TEMPLATE).exists() {
        fs::copy(SETTINGS_TEMPLATE, SETTINGS).map(drop)
    } else {
        fs::remove_file(SETTINGS)
    };
    restored.with_context(|| format!("cannot restore Debian's own settings in {SETTINGS}"))
}

fn apt_get(arguments: &[&str]) -> Result<()> {
    let status = Command::new("apt-get")
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .status()
        .context("apt-get cannot be started")?;
    ensure!(status.success(), "`apt-get {}` failed with {status}", arguments.join(" "));
    Ok(())
}
