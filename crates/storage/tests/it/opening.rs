//! Opening a database: its schema, and its lock.

use galley_storage::{Affects, Database, DatabaseUrl, Error, ProcessRole, Tx, WriteTx};
use galley_testing::{TestStore, on_both_engines};

use crate::store::{OpenStore, options};

async fn insert_newer_migration(database: &Database, oldest: &'static str) {
    let write =
        async move |tx: &WriteTx<'_>| {
            tx.execute(
            "INSERT INTO schema_migrations (version, name, checksum, oldest_program, applied_at_ms)
             VALUES (99, 'from the future', 'x', ?1, 0)",
            &[oldest.into()], Affects::Everything)
        .await
        };
    database.write::<_, Error, _>("pretend", write).await.unwrap();
}

#[on_both_engines]
async fn opening_again_changes_nothing(store: TestStore) {
    let open = OpenStore::new(store).await;
    let before = open.count("schema_migrations").await;
    let again =
        Database::open(options(open.store.url.clone(), ProcessRole::Command)).await.unwrap();
    assert_eq!(open.count("schema_migrations").await, before);
    assert_eq!(open.count("workspaces").await, 1);
    again.close().await;
}

#[on_both_engines(empty)]
async fn concurrent_opens_of_an_empty_database_succeed(store: TestStore) {
    let mut tasks = Vec::new();
    for _ in 0..6 {
        tasks.push(tokio::spawn(Database::open(options(store.url.clone(), ProcessRole::Command))));
    }
    for task in tasks {
        task.await.unwrap().unwrap().close().await;
    }
}

#[on_both_engines]
async fn a_database_that_is_too_new_is_rejected(store: TestStore) {
    let open = OpenStore::new(store).await;
    insert_newer_migration(&open.database, "9.0.0").await;
    let refused = Database::open(options(open.store.url.clone(), ProcessRole::Command)).await;
    let Err(Error::Schema(message)) = refused else { panic!("{refused:?}") };
    assert!(message.contains("too new") && message.contains("9.0.0"), "{message}");
}

#[on_both_engines]
async fn a_newer_schema_that_allows_this_program_is_accepted(store: TestStore) {
    let open = OpenStore::new(store).await;
    insert_newer_migration(&open.database, "0.1.0").await;
    let again =
        Database::open(options(open.store.url.clone(), ProcessRole::Command)).await.unwrap();
    again.ping().await.unwrap();
}

#[tokio::test]
async fn a_second_server_on_one_file_is_rejected_but_a_command_is_not() {
    let open = OpenStore::new(TestStore::sqlite()).await;
    let refused = Database::open(options(open.store.url.clone(), ProcessRole::Server)).await;
    assert!(matches!(refused, Err(Error::Locked(_))), "{refused:?}");
    let command =
        Database::open(options(open.store.url.clone(), ProcessRole::Command)).await.unwrap();
    let write = async |tx: &WriteTx<'_>| {
        tx.execute("UPDATE workspaces SET name = 'changed'", &[], Affects::Everything).await
    };
    command.write::<_, Error, _>("rename", write).await.unwrap();
    let read = async |tx: &Tx<'_>| {
        tx.get("SELECT name FROM workspaces", &[], |row| row.get::<String>(0)).await
    };
    let name = open.database.read::<_, Error, _>("name", read).await.unwrap();
    assert_eq!(name, "changed", "the server sees what the command wrote");
    open.database.close().await;
    drop(open.database);
}

#[tokio::test]
async fn a_closed_server_releases_its_file_lock() {
    let store = TestStore::sqlite();
    let first = Database::open(options(store.url.clone(), ProcessRole::Server)).await.unwrap();
    first.close().await;
    drop(first);
    Database::open(options(store.url.clone(), ProcessRole::Server)).await.unwrap().close().await;
}

#[tokio::test]
async fn an_unreachable_server_is_reported_as_unavailable() {
    let url = DatabaseUrl::Postgres("postgres://galley@127.0.0.1:1/galley".to_owned());
    let refused = Database::open(options(url, ProcessRole::Command)).await;
    assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
    let url = DatabaseUrl::Postgres("postgres://gal ley:x@/".to_owned());
    assert!(Database::open(options(url, ProcessRole::Command)).await.is_err());
}
