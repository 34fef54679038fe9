//! A new database for each test.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use galley_storage::DatabaseUrl;
use tempfile::TempDir;
use tokio_postgres::NoTls;

/// Says that a test is left out, past the test runner, which keeps what passing tests print to
/// itself.
pub fn skipped(why: &str) {
    // Nobody may be listening; the test is left out all the same.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}

/// Where the tests' PostgreSQL server is.
const POSTGRES_URL: &str = "GALLEY_TEST_POSTGRES_URL";

/// Counts the databases that this process made, for their names.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A database of one test. The SQLite file goes away with it.
#[derive(Debug)]
pub struct TestStore {
    /// Where it is.
    pub url: DatabaseUrl,
    directory: TempDir,
}

impl TestStore {
    /// An SQLite file that is not there yet.
    pub fn sqlite() -> Self {
        let directory = tempfile::tempdir().expect("the system has room for a directory");
        Self { url: DatabaseUrl::Sqlite(directory.path().join("galley.db")), directory }
    }

    /// An empty PostgreSQL database; nothing, where the tests have no server.
    pub async fn postgres() -> Option<Self> {
        let Ok(server) = std::env::var(POSTGRES_URL) else {
            skipped(&format!("PostgreSQL: {POSTGRES_URL} is not set (cargo xtask test sets it)"));
            return None;
        };
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("galley_test_{}_{number}", std::process::id());
        let (client, connection) =
            tokio_postgres::connect(&server, NoTls).await.expect("the tests' server answers");
        let connection = tokio::spawn(connection);
        client
            .batch_execute(&format!("DROP DATABASE IF EXISTS {name}; "))
            .await
            .expect("a leftover can be dropped");
        client
            .batch_execute(&format!("CREATE DATABASE {name}"))
            .await
            .expect("a database can be made");
        drop(client);
        connection.await.expect("the connection's task ends").expect("the connection ends well");
        let (base, _) = server.rsplit_once('/').expect("the URL names a database");
        Some(Self::at(DatabaseUrl::Postgres(format!("{base}/{name}"))))
    }

    /// One that is made already.
    pub fn at(url: DatabaseUrl) -> Self {
        Self { url, directory: tempfile::tempdir().expect("the system has room for a directory") }
    }

    /// A directory of the test's own.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The engine's name.
    pub fn engine(&self) -> &'static str {
        match self.url {
            DatabaseUrl::Sqlite(_) => "SQLite",
            DatabaseUrl::Postgres(_) => "PostgreSQL",
        }
    }
}
