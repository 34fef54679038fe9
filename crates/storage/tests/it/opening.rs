//! Opening a database: its schema, and its lock.

use galley_storage::{Database, DatabaseUrl, Error, Role, Tx, WriteTx};
use galley_testing::{TestStore, on_both_engines};

use crate::store::{Open, options};

async fn pretend_a_newer_program_was_here(database: &Database, oldest: &'static str) {
    let write = async move |tx: &WriteTx<'_>| {
        tx.execute(
            "INSERT INTO schema_migrations (version, name, checksum, oldest_program, applied_at_ms)
             VALUES (99, 'from the future', 'x', ?1, 0)",
            &[oldest.into()],
        )
        .await
    };
    database.write::<_, Error, _>("pretend", write).await.unwrap();
}

on_both_engines! {
    async fn opening_again_changes_nothing(store: TestStore) {
        let open = Open::new(store).await;
        let before = open.count("schema_migrations").await;
        let again = Database::open(options(open.store.url.clone(), Role::Command)).await.unwrap();
        assert_eq!(open.count("schema_migrations").await, before);
        assert_eq!(open.count("workspaces").await, 1);
        again.close().await;
    }

    async fn many_may_open_an_empty_database_at_once(store: TestStore) {
        let mut tasks = Vec::new();
        for _ in 0..6 {
            tasks.push(tokio::spawn(Database::open(options(store.url.clone(), Role::Command))));
        }
        for task in tasks {
            task.await.unwrap().unwrap().close().await;
        }
    }

    async fn a_database_that_is_too_new_is_refused(store: TestStore) {
        let open = Open::new(store).await;
        pretend_a_newer_program_was_here(&open.database, "9.0.0").await;
        let refused = Database::open(options(open.store.url.clone(), Role::Command)).await;
        let Err(Error::Schema(message)) = refused else { panic!("{refused:?}") };
        assert!(message.contains("too new") && message.contains("9.0.0"), "{message}");
    }

    async fn a_newer_schema_that_allows_this_program_is_served(store: TestStore) {
        let open = Open::new(store).await;
        pretend_a_newer_program_was_here(&open.database, "0.1.0").await;
        let again = Database::open(options(open.store.url.clone(), Role::Command)).await.unwrap();
        again.ping().await.unwrap();
    }
}

#[tokio::test]
async fn a_second_server_on_one_file_is_refused_and_a_command_is_not() {
    let open = Open::new(TestStore::sqlite()).await;
    let refused = Database::open(options(open.store.url.clone(), Role::Server)).await;
    assert!(matches!(refused, Err(Error::Locked(_))), "{refused:?}");
    let command = Database::open(options(open.store.url.clone(), Role::Command)).await.unwrap();
    let write =
        async |tx: &WriteTx<'_>| tx.execute("UPDATE workspaces SET name = 'changed'", &[]).await;
    command.write::<_, Error, _>("rename", write).await.unwrap();
    let read = async |tx: &Tx<'_>| {
        tx.get("SELECT name FROM workspaces", &[], |row| Ok(row.text(0)?.to_owned())).await
    };
    let name = open.database.read::<_, Error, _>("name", read).await.unwrap();
    assert_eq!(name, "changed", "the server sees what the command wrote");
    open.database.close().await;
    drop(open.database);
}

#[tokio::test]
async fn a_server_that_has_gone_leaves_its_file_free() {
    let store = TestStore::sqlite();
    let first = Database::open(options(store.url.clone(), Role::Server)).await.unwrap();
    first.close().await;
    drop(first);
    Database::open(options(store.url.clone(), Role::Server)).await.unwrap().close().await;
}

#[tokio::test]
async fn an_address_where_nobody_listens_is_said_to_be_unavailable() {
    let url = DatabaseUrl::Postgres("postgres://galley@127.0.0.1:1/galley".to_owned());
    let refused = Database::open(options(url, Role::Command)).await;
    assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
    let url = DatabaseUrl::Postgres("postgres://gal ley:x@/".to_owned());
    assert!(Database::open(options(url, Role::Command)).await.is_err());
}
