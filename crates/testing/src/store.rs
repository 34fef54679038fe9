//! A new database for each test.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use galley_storage::DatabaseUrl;
use tempfile::TempDir;
use tokio_postgres::NoTls;

/// Reports that a test is skipped. It writes to standard error directly, as the test runner
/// captures the output of passing tests.
pub fn report_skipped(why: &str) {
    // The test is skipped even if standard error is closed.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}

/// The variable that names the tests' PostgreSQL server.
const POSTGRES_URL: &str = "GALLEY_TEST_POSTGRES_URL";

/// The number of databases that this process has created, used in their names.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// The database of one test. An SQLite file is deleted with it.
#[derive(Debug)]
pub struct TestStore {
    /// The database's URL.
    pub url: DatabaseUrl,
    directory: TempDir,
}

impl TestStore {
    /// Returns the URL of an SQLite file that does not exist yet.
    pub fn sqlite() -> Self {
        let directory = tempfile::tempdir().expect("the system has room for a directory");
        Self { url: DatabaseUrl::Sqlite(directory.path().join("galley.db")), directory }
    }

    /// Creates an empty PostgreSQL database. Returns `None` if the tests have no server.
    pub async fn postgres() -> Option<Self> {
        let Ok(server) = std::env::var(POSTGRES_URL) else {
            report_skipped(&format!(
                "PostgreSQL: {POSTGRES_URL} is not set (cargo xtask test sets it)"
            ));
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

    /// Uses an existing database.
    pub fn at(url: DatabaseUrl) -> Self {
        Self { url, directory: tempfile::tempdir().expect("the system has room for a directory") }
    }

    /// Returns a directory that belongs to this test.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Returns the engine's name.
    pub fn engine(&self) -> &'static str {
        match self.url {
            DatabaseUrl::Sqlite(_) => "SQLite",
            DatabaseUrl::Postgres(_) => "PostgreSQL",
        }
    }
}
