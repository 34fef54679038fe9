//! A throw-away PostgreSQL server for tests and development.
//!
//! [`provide`] is the entry point. It uses the server that the user names, or finds the programs
//! ([`find`]), or fetches them ([`install`]). Then it starts a server of its own ([`server`]) in a
//! directory of its own ([`scratch`]), as a user other than root ([`privileges`]). A server is
//! stopped when its [`TemporaryServer`] is dropped. If its command was killed with SIGKILL, the
//! next start stops the server.
//!
//! The machine's other servers are never touched, and no setting outside the directory is changed.

mod binaries;
mod debian_download;
mod debian_install;
mod find;
mod install;
mod privileges;
mod scratch;
mod server;
mod versions;

use std::{env, ffi::OsString};

use anyhow::{Context, Error, Result};

pub(crate) use scratch::Place;
pub(crate) use server::TemporaryServer;

/// The variable that holds a server's address for the tests.
const URL_VARIABLE: &str = "GALLEY_TEST_POSTGRES_URL";

/// The variable that names a directory for tests that start servers: with the programs' scripts,
/// and with space for data.
const DIRECTORY_VARIABLE: &str = "GALLEY_TEST_POSTGRES_DIRECTORY";

const NOT_FOUND: &str = "no PostgreSQL server programs were found; install your system's \
    PostgreSQL server package, or set GALLEY_POSTGRES_BIN to the directory of initdb and postgres, \
    or GALLEY_TEST_POSTGRES_URL to the address of a running server";

const UNUSABLE: &str = "PostgreSQL's programs were fetched but do not run, for the reason above; \
                        install your system's PostgreSQL server package, or set CARGO_TARGET_DIR \
                        to a directory that all users can access";

/// The result of providing a server.
pub(crate) enum Provision {
    /// The server that the user named, used as it is.
    Given(String),
    /// A server of our own, which runs until this is dropped.
    Started(TemporaryServer),
    /// No server is available. The error tells the user how to resolve it.
    Missing(Error),
}

impl Provision {
    /// Returns the server's address.
    pub(crate) fn url(&self) -> Option<&str> {
        match self {
            Self::Given(url) => Some(url),
            Self::Started(server) => Some(server.url()),
            Self::Missing(_) => None,
        }
    }

    /// Returns the environment variables that describe the server to tests. A variable without a
    /// value is to be removed.
    pub(crate) fn variables(&self) -> Vec<(&'static str, Option<OsString>)> {
        let directory = match self {
            Self::Given(_) => env::var_os(DIRECTORY_VARIABLE),
            Self::Started(server) => Some(server.directory().into()),
            Self::Missing(_) => None,
        };
        let mut variables =
            vec![(URL_VARIABLE, self.url().map(OsString::from)), (DIRECTORY_VARIABLE, directory)];
        if let Self::Started(server) = self
            && let Some(temporary) = server.temporary()
        {
            variables.push(("TMPDIR", Some(temporary.into())));
        }
        variables
    }
}

/// Provides a server, and logs to standard error which one. One of our own has these settings, and
/// its data is in this place.
pub(crate) fn provide(settings: &[&str], place: Place) -> Provision {
    if let Some(url) = env::var(URL_VARIABLE).ok().filter(|url| !url.is_empty()) {
        eprintln!("using the server that {URL_VARIABLE} names");
        return Provision::Given(url);
    }
    start(settings, place).map_or_else(Provision::Missing, Provision::Started)
}

fn start(settings: &[&str], place: Place) -> Result<TemporaryServer> {
    let account = privileges::Account::choose()?;
    if let Some(binaries) = find::find(&account)? {
        return TemporaryServer::start(&binaries, &account, settings, place);
    }
    install::install(&account).context(NOT_FOUND)?;
    // The packages create a user of their own, which may not have existed before.
    let account = privileges::Account::choose()?;
    let binaries = find::find(&account)?.context(UNUSABLE)?;
    TemporaryServer::start(&binaries, &account, settings, place)
}
