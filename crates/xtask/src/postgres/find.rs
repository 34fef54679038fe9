//! Candidates for PostgreSQL's server programs, in the order in which they are tried.
//!
//! This module fetches nothing; see [`super::install`].

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use super::{binaries::Binaries, debian_download, privileges::Account, versions::newest_first};
use crate::child;

/// The variable that names the programs' directory.
const DIRECTORY_VARIABLE: &str = "GALLEY_POSTGRES_BIN";

/// Finds programs that the account can run.
///
/// Programs that the user named must run, or this fails. Other candidates that don't run are
/// skipped, and the reason is logged.
pub(super) fn find(account: &Account) -> Result<Option<Binaries>> {
    if let Some(directory) = env::var_os(DIRECTORY_VARIABLE).filter(|value| !value.is_empty()) {
        return named(Binaries::installed(directory), account).map(Some);
    }
    for binaries in candidates().filter(Binaries::exist) {
        let place = binaries.directory().display();
        match binaries.version(account) {
            Ok(version) => {
                eprintln!("using {version} in {place}");
                return Ok(Some(binaries));
            }
            Err(error) => eprintln!("skipping {place}: {error:#}"),
        }
    }
    Ok(None)
}

fn named(binaries: Binaries, account: &Account) -> Result<Binaries> {
    let place = binaries.directory().display();
    ensure!(
        binaries.exist(),
        "{DIRECTORY_VARIABLE} must name a directory with initdb, postgres and pg_ctl, which \
         {place} is not"
    );
    let version = binaries.version(account).with_context(|| {
        format!("the programs in the directory {DIRECTORY_VARIABLE} do not run")
    })?;
    eprintln!("using {version} in {place}");
    Ok(binaries)
}

fn candidates() -> impl Iterator<Item = Binaries> {
    let installed = on_path().into_iter().chain(beside_pg_config()).chain(in_known_places());
    installed.map(Binaries::installed).chain(debian_download::unpacked())
}

fn on_path() -> Vec<PathBuf> {
    env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default()
}

fn beside_pg_config() -> Option<PathBuf> {
    let directory = child::output(Command::new("pg_config").arg("--bindir")).ok()?;
    Some(PathBuf::from(directory.trim()))
}

/// Returns the directories of Debian and Ubuntu, Red Hat, a build from source, Homebrew on either
/// processor, and Postgres.app.
fn in_known_places() -> Vec<PathBuf> {
    let mut places = newest_first("/usr/lib/postgresql", "", "bin");
    places.extend(newest_first("/usr", "pgsql-", "bin"));
    places.push("/usr/local/pgsql/bin".into());
    for homebrew in ["/opt/homebrew/opt", "/usr/local/opt", "/home/linuxbrew/.linuxbrew/opt"] {
        places.extend(newest_first(homebrew, "postgresql@", "bin"));
        places.push(Path::new(homebrew).join("postgresql/bin"));
    }
    places.push("/Applications/Postgres.app/Contents/Versions/latest/bin".into());
    places
}
