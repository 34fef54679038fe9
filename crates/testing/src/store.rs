//! A new database for each test.

use std::io::Write;
use std::mem;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;

use galley_domain::Timestamp;
use galley_storage::{Database, DatabaseUrl, Options, ProcessRole};
use tempfile::TempDir;
use tokio::runtime;
use tokio::sync::OnceCell;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
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

/// The number of databases that are dropped together. PostgreSQL writes a checkpoint for each drop,
/// and those after the first have little to write.
const DROP_BATCH_SIZE: usize = 16;

/// The servers and names of finished tests' databases, dropped by a thread. Without it, a run of
/// all tests leaves several gigabytes on the disk until its server is removed.
static DROPPED: LazyLock<UnboundedSender<(String, String)>> = LazyLock::new(|| {
    let (sender, receiver) = unbounded_channel();
    thread::spawn(|| {
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("the runtime starts").block_on(drop_databases(receiver));
    });
    sender
});

/// The database of one test. It is deleted after it, and PostgreSQL's in batches.
#[derive(Debug)]
pub struct TestStore {
    /// The database's URL.
    pub url: DatabaseUrl,
    files: Arc<TestFiles>,
}

/// The storage of one test, deleted when this is dropped.
#[derive(Debug)]
pub(crate) struct TestFiles {
    directory: TempDir,
    database: Option<PostgresDatabase>,
}

impl TestFiles {
    fn new(database: Option<PostgresDatabase>) -> Arc<Self> {
        let directory = tempfile::tempdir().expect("a temporary directory is created");
        Arc::new(Self { directory, database })
    }
}

/// A PostgreSQL database of a test, queued for [`drop_databases`] when this is dropped.
#[derive(Debug)]
struct PostgresDatabase {
    server: String,
    name: String,
}

impl Drop for PostgresDatabase {
    fn drop(&mut self) {
        // The receiver lives as long as the process.
        let _ = DROPPED.send((mem::take(&mut self.server), mem::take(&mut self.name)));
    }
}

/// Drops the received databases. A failure changes no test, as their server is removed at the end.
async fn drop_databases(mut receiver: UnboundedReceiver<(String, String)>) {
    let mut batch = Vec::new();
    while let Some(database) = receiver.recv().await {
        batch.push(database);
        if batch.len() < DROP_BATCH_SIZE {
            continue;
        }
        for (server, name) in batch.drain(..) {
            let Ok((client, connection)) = tokio_postgres::connect(&server, NoTls).await else {
                continue;
            };
            let connection = tokio::spawn(connection);
            let statement = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
            let _ = client.batch_execute(&statement).await;
            drop(client);
            let _ = connection.await;
        }
    }
}

/// Returns the address of the tests' PostgreSQL server, or reports that it is missing.
fn postgres_server() -> Option<String> {
    let server = std::env::var(POSTGRES_URL).ok();
    if server.is_none() {
        let name = POSTGRES_URL;
        report_skipped(&format!("PostgreSQL: {name} is not set (cargo xtask test sets it)"));
    }
    server
}

/// Creates a PostgreSQL database, and migrates its schema.
async fn migrated_postgres(server: &str) -> TestStore {
    let store = TestStore::postgres_copy(server.to_owned(), "template1").await;
    let options = Options {
        url: store.url.clone(),
        replica_url: None,
        role: ProcessRole::Command,
        program_version: "0.1.0",
        now: Timestamp::from_ms(0),
        connections: 1,
        write_timeout: Duration::from_mins(1),
        statement_log: None,
    };
    let database = Database::open(options).await.expect("the schema is created");
    database.close().await;
    store
}

impl TestStore {
    /// Returns the URL of an SQLite file that does not exist yet.
    pub fn sqlite() -> Self {
        let files = TestFiles::new(None);
        Self { url: DatabaseUrl::Sqlite(files.directory.path().join("galley.db")), files }
    }

    /// Creates a PostgreSQL database with the current schema and no rows. Returns `None` if the
    /// tests have no server.
    ///
    /// It is a copy of a template, as a copy takes less time than the creation of the schema.
    pub async fn postgres() -> Option<Self> {
        static TEMPLATE: OnceCell<TestStore> = OnceCell::const_new();
        let server = postgres_server()?;
        let template = TEMPLATE.get_or_init(|| migrated_postgres(&server)).await;
        Some(Self::postgres_copy(server.clone(), template.postgres_name()).await)
    }

    /// Creates an empty PostgreSQL database. Returns `None` if the tests have no server.
    pub async fn empty_postgres() -> Option<Self> {
        Some(Self::postgres_copy(postgres_server()?, "template1").await)
    }

    async fn postgres_copy(server: String, template: &str) -> Self {
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
            .batch_execute(&format!("CREATE DATABASE {name} TEMPLATE {template}"))
            .await
            .expect("a database can be made");
        drop(client);
        connection.await.expect("the connection's task ends").expect("the connection ends well");
        let (base, _) = server.rsplit_once('/').expect("the URL names a database");
        let url = DatabaseUrl::Postgres(format!("{base}/{name}"));
        let database = PostgresDatabase { server, name };
        Self { url, files: TestFiles::new(Some(database)) }
    }

    fn postgres_name(&self) -> &str {
        &self.files.database.as_ref().expect("it is on PostgreSQL").name
    }

    /// Uses an existing database.
    pub fn at(url: DatabaseUrl) -> Self {
        Self { url, files: TestFiles::new(None) }
    }

    /// Returns a directory that belongs to this test.
    pub fn directory(&self) -> &Path {
        self.files.directory.path()
    }

    /// Returns the storage, which outlives this while the test's server stops.
    pub(crate) fn files(&self) -> Arc<TestFiles> {
        Arc::clone(&self.files)
    }

    /// Returns the connection string of a PostgreSQL database.
    pub fn postgres_url(&self) -> Option<&str> {
        match &self.url {
            DatabaseUrl::Sqlite(_) => None,
            DatabaseUrl::Postgres(url) => Some(url),
        }
    }

    /// Returns the engine's name.
    pub fn engine(&self) -> &'static str {
        match self.url {
            DatabaseUrl::Sqlite(_) => "SQLite",
            DatabaseUrl::Postgres(_) => "PostgreSQL",
        }
    }
}
