//! Guarantees of transactions, on both engines.

use std::time::Duration;

use galley_domain::content_piece::ContentPiece;
use galley_domain::{ContentPieceId, OrderKey};
use galley_storage::{Database, Error, IdPage, ProcessRole, Tx, WriteTx, content_pieces};
use galley_testing::{TestStore, on_both_engines};

use crate::store::{OpenStore, id, options};

/// Waits once for an event outside of the database.
async fn await_elsewhere() {
    let mut polled = false;
    std::future::poll_fn(move |context| {
        if std::mem::replace(&mut polled, true) {
            return std::task::Poll::Ready(());
        }
        context.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}

#[on_both_engines]
async fn a_failed_write_is_rolled_back(store: TestStore) {
    let open = OpenStore::new(store).await;
    let (workspace, piece) = (open.workspace, open.piece("a", None));
    let write = async move |tx: &WriteTx<'_>| {
        content_pieces::insert(tx, workspace, &piece, "{}").await?;
        Err::<(), _>(Error::Conflict)
    };
    assert!(matches!(open.database.write("fails", write).await, Err(Error::Conflict)));
    assert_eq!(open.count("content_pieces").await, 0);
    assert_eq!(open.count("content_piece_contents").await, 0);
}

#[on_both_engines]
async fn a_panic_rolls_back_only_its_own_write(store: TestStore) {
    let open = std::sync::Arc::new(OpenStore::new(store).await);
    let mut tasks = Vec::new();
    for number in 0..60 {
        let open = std::sync::Arc::clone(&open);
        tasks.push(tokio::spawn(async move {
            let workspace = open.workspace;
            let mut piece = open.piece("a", None);
            piece.order = galley_domain::OrderKey::from_stored(format!("{number:05}"));
            let write = async move |tx: &WriteTx<'_>| {
                content_pieces::insert(tx, workspace, &piece, "{}").await?;
                assert!(number % 10 != 3, "this one panics, as the test wants");
                if number % 10 == 7 { Err(Error::Conflict) } else { Ok(()) }
            };
            open.database.write("may panic", write).await
        }));
    }
    let mut kept = 0;
    for (number, task) in tasks.into_iter().enumerate() {
        // On PostgreSQL, the panic reaches the caller.
        let kept_this = matches!(task.await, Ok(Ok(())));
        assert_eq!(kept_this, number % 10 != 3 && number % 10 != 7, "{number}");
        kept += i64::from(kept_this);
    }
    assert_eq!(open.count("content_pieces").await, kept);
    open.database.ping().await.unwrap();
}

#[on_both_engines]
async fn concurrent_inserts_at_one_key_all_succeed(store: TestStore) {
    let open = std::sync::Arc::new(OpenStore::new(store).await);
    let mut tasks = Vec::new();
    for _ in 0..16 {
        let open = std::sync::Arc::clone(&open);
        tasks.push(tokio::spawn(async move {
            for _ in 0..10 {
                let workspace = open.workspace;
                let piece = open.piece("a", None);
                let write = async move |tx: &WriteTx<'_>| {
                    let mut piece = piece.clone();
                    // All writers choose the same step, so that their keys collide.
                    piece.order = galley_storage::ordering::at_the_end(tx, workspace, 0).await?;
                    content_pieces::insert(tx, workspace, &piece, "{}").await
                };
                open.database.write::<_, Error, _>("append", write).await.unwrap();
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(open.count("content_pieces").await, 160);
}

#[on_both_engines]
async fn bursts_are_admitted_and_sustained_overload_is_rejected(store: TestStore) {
    /// More writes than may wait while the queue never empties.
    const MANY: usize = 400;
    let open = std::sync::Arc::new(OpenStore::new(store).await);
    // This takes a while, and changes no rows that others would wait for.
    let write = |open: &OpenStore| {
        let (database, workspace) = (open.database.clone(), open.workspace);
        let write = async move |tx: &WriteTx<'_>| {
            std::thread::sleep(std::time::Duration::from_millis(2));
            galley_storage::tags::list(tx, workspace, None, &IdPage::default()).await.map(drop)
        };
        async move { database.write::<_, Error, _>("waits", write).await }
    };
    let crowd: Vec<_> = (0..MANY).map(|_| tokio::spawn(write(&open))).collect();
    for task in crowd {
        task.await.unwrap().unwrap();
    }
    let end = std::time::Instant::now() + std::time::Duration::from_secs(4);
    let clients: Vec<_> = (0..MANY)
        .map(|_| {
            let open = std::sync::Arc::clone(&open);
            tokio::spawn(async move {
                let (mut done, mut refused) = (0, 0);
                while std::time::Instant::now() < end {
                    match write(&open).await {
                        Ok(()) => done += 1,
                        Err(Error::Overloaded) => {
                            refused += 1;
                            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
                (done, refused)
            })
        })
        .collect();
    let (mut done, mut refused) = (0, 0);
    for client in clients {
        let counts = client.await.unwrap();
        (done, refused) = (done + counts.0, refused + counts.1);
    }
    assert!(done > 0 && refused > 0, "{done} done, {refused} refused");
    write(&open).await.unwrap();
}

#[on_both_engines]
async fn a_read_sees_every_acknowledged_write(store: TestStore) {
    let open = OpenStore::new(store).await;
    for number in 0..100 {
        let workspace = open.workspace;
        let mut piece = open.piece("a", None);
        piece.order = galley_domain::OrderKey::from_stored(format!("{number:05}"));
        let id = piece.id;
        let write =
            async move |tx: &WriteTx<'_>| content_pieces::insert(tx, workspace, &piece, "{}").await;
        open.database.write::<_, Error, _>("insert", write).await.unwrap();
        let read = async move |tx: &Tx<'_>| content_pieces::find(tx, workspace, id).await;
        assert!(open.database.read::<_, Error, _>("find", read).await.unwrap().is_some());
    }
}

/// Starts a proxy to a PostgreSQL server, and returns its URL with a switch. After the switch,
/// existing connections transfer nothing, but stay open.
async fn start_silenceable_proxy(url: &str) -> Option<(String, tokio::sync::watch::Sender<bool>)> {
    let authority = url.split_once("://")?.1.split(['/', '?']).next()?;
    let server = authority.rsplit('@').next()?.to_owned();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.ok()?;
    let own = listener.local_addr().ok()?.to_string();
    let url = url.replacen(&server, &own, 1);
    let (silence, is_silent) = tokio::sync::watch::channel(false);
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let mut far = tokio::net::TcpStream::connect(&server).await.unwrap();
            let mut is_silent = is_silent.clone();
            is_silent.mark_unchanged();
            tokio::spawn(async move {
                tokio::select! {
                    _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                    _ = is_silent.changed() => std::future::pending::<()>().await,
                }
            });
        }
    });
    Some((url, silence))
}

#[tokio::test]
async fn reads_use_a_new_connection_after_one_falls_silent() {
    let Some(store) = galley_testing::TestStore::postgres().await else { return };
    let galley_storage::DatabaseUrl::Postgres(url) = &store.url else { unreachable!() };
    let Some((url, silence)) = start_silenceable_proxy(url).await else { return };
    let options = galley_storage::Options {
        url: galley_storage::DatabaseUrl::Postgres(url),
        replica_url: None,
        ..crate::store::options(store.url.clone(), galley_storage::ProcessRole::Server)
    };
    let database = galley_storage::Database::open(options).await.unwrap();
    let look_up = async || {
        let find = async |tx: &Tx<'_>| {
            galley_storage::authentication::find_by_token_hash(tx, &[7; 32]).await
        };
        database.read_row::<_, Error, _>("find", find).await
    };
    assert!(matches!(look_up().await, Ok(None)));
    silence.send_replace(true);
    let (first, second) = tokio::join!(look_up(), look_up());
    for refused in [first, second] {
        assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
    }
    assert!(matches!(look_up().await, Ok(None)));
    assert!(database.clock().await.unwrap().is_some());
}

#[tokio::test]
async fn a_transaction_that_awaits_something_else_is_rejected_on_sqlite() {
    let open = OpenStore::new(galley_testing::TestStore::sqlite()).await;
    let (workspace, piece) = (open.workspace, open.piece("a", None));
    let write = async move |tx: &WriteTx<'_>| {
        content_pieces::insert(tx, workspace, &piece, "{}").await?;
        await_elsewhere().await;
        Ok(())
    };
    let refused = open.database.write("dawdles", write).await;
    assert!(matches!(refused, Err(Error::AwaitedElsewhere("dawdles"))), "{refused:?}");
    assert_eq!(open.count("content_pieces").await, 0, "and nothing of it is kept");
    let read = async |_: &Tx<'_>| {
        await_elsewhere().await;
        Ok(())
    };
    let refused = open.database.read("dawdles", read).await;
    assert!(matches!(refused, Err(Error::AwaitedElsewhere("dawdles"))), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_read_is_interrupted_and_keeps_its_thread_until_then() {
    let store = TestStore::sqlite();
    let mut one_thread = options(store.url.clone(), ProcessRole::Server);
    one_thread.connections = 1;
    let database = Database::open(one_thread).await.unwrap();
    let count_to = |end: i64| {
        let sql = format!(
            "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < {end})
             SELECT count(*) FROM c"
        );
        let count = async move |tx: &Tx<'_>| tx.get(&sql, &[], |row| row.get::<i64>(0)).await;
        database.read_long::<_, Error, _>("count", count)
    };
    for _ in 0..20 {
        // Without an interrupt, this would take minutes.
        let long = tokio::time::timeout(Duration::from_millis(50), count_to(10_000_000_000)).await;
        assert!(long.is_err(), "{long:?}");
    }
    assert_eq!(count_to(10).await.unwrap(), 10);
    let path = store.directory().join("galley.db");
    let open = std::fs::read_dir("/proc/self/fd").unwrap().filter_map(Result::ok);
    let of_database =
        open.filter(|entry| std::fs::read_link(entry.path()).is_ok_and(|to| to == path));
    // The writer and the checkpointer have a connection each, and the only reader thread has one.
    assert!(of_database.count() <= 4, "each dropped read has made a connection");
    database.close().await;
}

/// PostgreSQL plans the check of a foreign key while the referenced table is empty, when all its
/// indexes seem equal.
#[tokio::test]
async fn foreign_keys_of_a_large_transaction_are_checked_by_their_own_index() {
    const PIECES: u32 = 4_000;
    let Some(store) = TestStore::postgres().await else { return };
    let open = OpenStore::new(store).await;
    let (workspace, first) = (open.workspace, open.piece("a", None));
    let write = async move |tx: &WriteTx<'_>| {
        for order in OrderKey::spread_part(None, None, 1..=PIECES, PIECES) {
            let id = ContentPieceId::new(id());
            let piece = ContentPiece { id, order, ..first.clone() };
            content_pieces::insert(tx, workspace, &piece, "{}").await?;
        }
        Ok::<_, Error>(())
    };
    open.database.write("fill", write).await.unwrap();
    let url = open.store.postgres_url().expect("it is PostgreSQL");
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let sql = "SELECT idx_scan FROM pg_stat_user_indexes
        WHERE indexrelname = 'content_pieces_pkey'";
    // Each content refers to its piece. The first checks may use another index, as long as that is
    // small. The server counts a transaction up to a second after its end.
    let expected = i64::from(PIECES) / 3;
    for _ in 0..100 {
        if client.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) >= expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let counts = "SELECT string_agg(indexrelname || ': ' || idx_scan, ', ')
        FROM pg_stat_user_indexes WHERE relname = 'content_pieces'";
    panic!("{}", client.query_one(counts, &[]).await.unwrap().get::<_, String>(0));
}
