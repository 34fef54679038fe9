//! Faults below SQLite: a full disk, a foreign lock, a read that takes too long.

use std::sync::Arc;
use std::time::Duration;

use galley_storage::{Database, Error, ProcessRole, Tx, WriteTx, content_pieces};
use galley_testing::TestStore;

use crate::store::{NOW, OpenStore, options};

/// Limits the file to `pages`, as a disk of that size would.
async fn limit_file_size(open: &OpenStore, pages: u32) {
    let set = async move |tx: &WriteTx<'_>| {
        tx.query(&format!("PRAGMA max_page_count = {pages}"), &[], |_| Ok(())).await.map(drop)
    };
    open.database.write::<_, Error, _>("set room", set).await.unwrap();
}

async fn insert(open: &OpenStore, number: usize) -> Result<(), Error> {
    let workspace = open.workspace;
    let mut piece = open.piece(&format!("p{number}"), None);
    piece.order = galley_domain::OrderKey::from_stored(format!("{number:05}"));
    let tree = "x".repeat(6_000);
    let write =
        async move |tx: &WriteTx<'_>| content_pieces::insert(tx, workspace, &piece, &tree).await;
    open.database.write("insert", write).await
}

async fn slugs(open: &OpenStore) -> Vec<String> {
    let read = async |tx: &Tx<'_>| {
        let sql = "SELECT slug FROM content_pieces ORDER BY slug";
        tx.query(sql, &[], |row| row.get(0)).await
    };
    open.database.read_long::<_, Error, _>("slugs", read).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_full_disk_only_acknowledged_writes_are_stored() {
    let open = Arc::new(OpenStore::new(TestStore::sqlite()).await);
    limit_file_size(&open, 400).await;
    let mut acknowledged = Vec::new();
    let mut refused = 0;
    for round in 0..10 {
        let tasks: Vec<_> = (0..32)
            .map(|index| {
                let open = Arc::clone(&open);
                let number = round * 32 + index;
                tokio::spawn(async move { (number, insert(&open, number).await) })
            })
            .collect();
        for task in tasks {
            match task.await.unwrap() {
                (number, Ok(())) => acknowledged.push(format!("p{number}")),
                (_, Err(Error::StorageFull)) => refused += 1,
                (_, Err(other)) => panic!("{other:?}"),
            }
        }
        acknowledged.sort();
        assert_eq!(slugs(&open).await, acknowledged, "reads go on, and show what was answered");
    }
    assert!(refused > 0 && !acknowledged.is_empty(), "{refused} refused, {acknowledged:?}");
    assert_eq!(open.count("content_piece_contents").await, acknowledged.len() as i64);
    limit_file_size(&open, 1_000_000).await;
    insert(&open, 9_999).await.expect("it heals when there is room");
    assert_eq!(open.count("content_pieces").await, acknowledged.len() as i64 + 1);
}

#[tokio::test]
async fn a_write_that_times_out_is_rejected_and_not_executed_later() {
    let store = TestStore::sqlite();
    let mut short = options(store.url.clone(), ProcessRole::Server);
    short.write_timeout = Duration::from_millis(300);
    let database = Database::open(short).await.unwrap();
    let galley_storage::DatabaseUrl::Sqlite(path) = &store.url else { unreachable!() };
    let foreign = rusqlite::Connection::open(path).unwrap();
    foreign.execute_batch("BEGIN IMMEDIATE").unwrap();
    let insert = |name: &'static str| {
        let database = database.clone();
        async move {
            let workspace = galley_domain::WorkspaceId::new(crate::store::id());
            let write = async move |tx: &WriteTx<'_>| {
                galley_storage::workspaces::insert(tx, workspace, name, NOW).await
            };
            database.write::<_, Error, _>("insert", write).await
        }
    };
    let (first, second) = tokio::join!(insert("first"), insert("second"));
    for answer in [first, second] {
        assert!(matches!(answer, Err(Error::Overloaded)), "{answer:?}");
    }
    foreign.execute_batch("COMMIT").unwrap();
    insert("third").await.unwrap();
    let read = async |tx: &Tx<'_>| {
        tx.query("SELECT name FROM workspaces", &[], |row| row.get::<String>(0)).await
    };
    assert_eq!(database.read::<_, Error, _>("names", read).await.unwrap(), ["third"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_read_continues_on_a_thread_of_its_own() {
    let open = OpenStore::new(TestStore::sqlite()).await;
    let read = async |tx: &Tx<'_>| {
        let sql =
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000)
            SELECT count(*) FROM n";
        tx.get(sql, &[], |row| row.get::<i64>(0)).await
    };
    let counted = open.database.read::<_, Error, _>("count far", read).await.unwrap();
    assert_eq!(counted, 1_000_000);
    let ran: u64 = open.log.take().values().filter(|count| **count == 2).count() as u64;
    assert_eq!(ran, 1, "it was interrupted where it was called, and ran again on its own thread");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wal_restarts_despite_constant_reads() {
    const MIB: u64 = 1024 * 1024;
    let store = TestStore::sqlite();
    let log = store.directory().join("galley.db-wal");
    let open = Arc::new(OpenStore::new(store).await);
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let readers: Vec<_> = (0..8)
        .map(|_| {
            let (open, stop) = (Arc::clone(&open), Arc::clone(&stop));
            tokio::spawn(async move {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    slugs(&open).await;
                }
            })
        })
        .collect();
    let (mut written, mut largest) = (0, 0);
    let tree = "x".repeat(512 * 1024);
    for number in 0..800 {
        let mut piece = open.piece(&format!("p{number}"), None);
        piece.order = galley_domain::OrderKey::from_stored(format!("{number:05}"));
        let (workspace, tree) = (open.workspace, tree.clone());
        let write = async move |tx: &WriteTx<'_>| {
            content_pieces::insert(tx, workspace, &piece, &tree).await
        };
        open.database.write::<_, Error, _>("insert", write).await.unwrap();
        written += 512 * 1024;
        largest = largest.max(std::fs::metadata(&log).unwrap().len());
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    for reader in readers {
        reader.await.unwrap();
    }
    // A log that never restarts would be larger than all written data.
    assert!(written > 350 * MIB && largest < written, "{} MiB", largest / MIB);
}

/// Results of grouped writes are sent from the runtime in which the database was opened.
#[test]
fn writes_complete_after_the_opening_runtime_has_ended() {
    let runtime =
        || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let (first, second) = (runtime().unwrap(), runtime().unwrap());
    let open = first.block_on(OpenStore::new(TestStore::sqlite()));
    first.block_on(insert(&open, 1)).unwrap();
    drop(first);
    second.block_on(insert(&open, 2)).unwrap();
    assert!(second.block_on(insert(&open, 2)).is_err(), "it is there");
    assert_eq!(second.block_on(slugs(&open)), ["p1", "p2"]);
}
