//! Connections after results that are not read completely.

use galley_storage::content_piece_list;
use galley_storage::{
    Database, DatabaseUrl, Error, Options, ProcessRole, Tx, WriteTx, content_pieces,
};
use galley_testing::{TestStore, on_both_engines};

use super::everything;
use crate::store::{OpenStore, options};

#[on_both_engines]
async fn a_partially_read_result_closes_its_connection(store: TestStore) {
    let DatabaseUrl::Postgres(_) = store.url else { return };
    let open = OpenStore::new(store).await;
    let workspace = open.workspace;
    let first = open.piece("first", None);
    let pieces = [first.clone(), open.piece("second", Some(&first.order))];
    let fill = async move |tx: &WriteTx<'_>| {
        for piece in &pieces {
            content_pieces::insert(tx, workspace, piece, "{}").await?;
        }
        Ok::<_, Error>(())
    };
    open.database.write("fill", fill).await.unwrap();
    let read = async move |tx: &Tx<'_>| {
        let connection =
            tx.get("SELECT pg_backend_pid()::BIGINT", &[], |row| row.get::<i64>(0)).await?;
        let all = everything();
        let (some, has_more) = content_piece_list::list_until(tx, workspace, &all, 1).await?;
        assert_eq!((some.len(), has_more), (1, true));
        Ok::<_, Error>(connection)
    };
    let connection = open.database.read("list", read).await.unwrap();
    let is_open = async move |tx: &Tx<'_>| {
        let sql = "SELECT 1 FROM pg_stat_activity WHERE pid = ?1";
        tx.exists(sql, &[connection.into()]).await
    };
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while open.database.read::<_, Error, _>("is_open", is_open).await.unwrap() {
        assert!(std::time::Instant::now() < deadline, "the connection is used again");
    }
}

#[on_both_engines]
async fn an_abandoned_statement_closes_its_connection_unless_it_ends_soon(store: TestStore) {
    let DatabaseUrl::Postgres(_) = store.url else { return };
    let one = Options { connections: 1, ..options(store.url.clone(), ProcessRole::Server) };
    let database = Database::open(one).await.unwrap();
    let of_connection = async |tx: &Tx<'_>| {
        tx.get("SELECT pg_backend_pid()::BIGINT", &[], |row| row.get::<i64>(0)).await
    };
    let first = database.read::<_, Error, _>("connection", of_connection).await.unwrap();
    let sleep = async |tx: &Tx<'_>| tx.exists("SELECT pg_sleep(600)::TEXT", &[]).await;
    let given_up = database.read::<_, Error, _>("sleep", sleep);
    let waited = std::time::Duration::from_millis(200);
    assert!(tokio::time::timeout(waited, given_up).await.is_err());
    let next = database.read::<_, Error, _>("connection", of_connection).await.unwrap();
    assert_ne!(next, first, "the statement was waited for");
    let is_open = async move |tx: &Tx<'_>| {
        let sql = "SELECT 1 FROM pg_stat_activity WHERE pid = ?1";
        tx.exists(sql, &[first.into()]).await
    };
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while database.read::<_, Error, _>("is_open", is_open).await.unwrap() {
        assert!(std::time::Instant::now() < deadline, "the statement goes on");
    }
    // Statements that end soon don't close their connection. On a stalled machine, a statement
    // may take too long, so this retries.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    let mut before = next;
    loop {
        let brief = async |tx: &Tx<'_>| tx.exists("SELECT pg_sleep(0.3)::TEXT", &[]).await;
        let given_up = database.read::<_, Error, _>("sleep", brief);
        let is_given_up = tokio::time::timeout(waited, given_up).await.is_err();
        let connection = database.read::<_, Error, _>("connection", of_connection).await.unwrap();
        if is_given_up && connection == before {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "the connection is closed each time");
        before = connection;
    }
}
