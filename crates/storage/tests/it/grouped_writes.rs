//! Guarantees of writes that share a transaction, on both engines.

use std::sync::Arc;

use galley_domain::content_group::{ContentGroup, ContentGroupName, GroupPath};
use galley_domain::content_piece::ContentPiece;
use galley_domain::event::ResourceChange;
use galley_domain::publication::ContentView;
use galley_domain::{ContentGroupId, EventId, WorkspaceId};
use galley_storage::event_append::{self, NewEvent};
use galley_storage::{
    Error, Failure, Tx, WriteKey, WriteTx, content_groups, content_pieces, events, ordering,
    workspaces,
};
use galley_testing::{TestStore, on_both_engines};
use tokio::sync::watch;

use crate::store::{NOW, OpenStore, id};
use crate::{plans, portability};

/// The error of a test's write.
#[derive(Debug)]
enum WriteError {
    Storage(Error),
    Rejected,
}

impl From<Error> for WriteError {
    fn from(error: Error) -> Self {
        Self::Storage(error)
    }
}

impl Failure for WriteError {
    fn storage_error(&self) -> Option<&Error> {
        match self {
            Self::Storage(error) => Some(error),
            Self::Rejected => None,
        }
    }
}

impl OpenStore {
    async fn add_workspace(&self) -> (WorkspaceId, ContentGroupId) {
        let (workspace, group) = (WorkspaceId::new(id()), ContentGroupId::new(id()));
        let add = async move |tx: &WriteTx<'_>| {
            workspaces::insert(tx, workspace, "Another", NOW).await?;
            let name = ContentGroupName::parse("Posts").unwrap();
            let group = ContentGroup {
                id: group,
                name,
                unique_slugs: false,
                custom_data_schema: None,
                preview_url: None,
                version: 1,
            };
            content_groups::insert(tx, workspace, &group, &GroupPath::default(), NOW).await
        };
        self.database.write::<_, Error, _>("add workspace", add).await.unwrap();
        (workspace, group)
    }

    async fn sequences(&self, workspace: WorkspaceId) -> Vec<i64> {
        let list = async move |tx: &Tx<'_>| {
            events::list_with_paths(tx, workspace, ContentView::Current, 0, 1_000, usize::MAX).await
        };
        let (found, _) = self.database.read::<_, Error, _>("events", list).await.unwrap();
        found.into_iter().map(|found| found.event.sequence).collect()
    }
}

/// Creates a piece at the end of the list, with its event.
async fn create(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    piece: &ContentPiece,
    random: u32,
) -> Result<(), Error> {
    ordering::lock(tx, workspace).await?;
    let path = content_groups::path(tx, workspace, piece.content_group_id).await?;
    let order = ordering::at_the_end(tx, workspace, random).await?;
    let piece = ContentPiece { order, ..piece.clone() };
    content_pieces::insert(tx, workspace, &piece, "{}").await?;
    append(tx, workspace, ResourceChange::PieceAdded(path)).await
}

async fn append(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    occurrence: ResourceChange,
) -> Result<(), Error> {
    let id = EventId::new(id());
    let data = "{}".to_owned();
    let view = ContentView::Current;
    let event = NewEvent { id, occurrence, view, data, data_before: None, custom_data_of: None };
    event_append::append(tx, workspace, [event], NOW).await
}

/// Increments the version of a piece, with its event.
async fn increment(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    piece: &ContentPiece,
) -> Result<(), Error> {
    let found = content_pieces::find_for_update(tx, workspace, piece.id).await?;
    let (before, path) = found.expect("the piece is there");
    let after = ContentPiece { version: before.version + 1, ..before.clone() };
    content_pieces::update(tx, workspace, &before, &after).await?;
    let change = ResourceChange::PieceUpdated { before: path.clone(), after: path };
    append(tx, workspace, change).await
}

#[on_both_engines]
async fn concurrent_creates_share_transactions_and_number_their_events_without_gaps(
    store: TestStore,
) {
    let open = Arc::new(OpenStore::new(store).await);
    let mut homes = vec![(open.workspace, open.group)];
    for _ in 0..3 {
        homes.push(open.add_workspace().await);
    }
    open.log.take();
    let tasks: Vec<_> = (0..200_u32)
        .map(|number| {
            let open = Arc::clone(&open);
            let (workspace, group) = homes[number as usize % 4];
            tokio::spawn(async move {
                let piece = ContentPiece { content_group_id: group, ..open.piece("a", None) };
                let write =
                    async move |tx: &WriteTx<'_>| create(tx, workspace, &piece, number).await;
                open.database.write_grouped::<_, Error, _>("create", Some(Vec::new()), write).await
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    for (workspace, _) in homes {
        assert_eq!(open.sequences(workspace).await, (1..=50).collect::<Vec<_>>());
    }
    let statements = open.log.take();
    assert_eq!(open.count("content_pieces").await, 200);
    if open.database.has_generations() {
        let lock = statements.iter().find(|(sql, _)| sql.ends_with("FOR NO KEY UPDATE"));
        let (_, times) = lock.expect("the events are numbered under a lock");
        assert!(*times < 100, "{times} locks for 200 events");
    }
    portability::check(statements.keys());
    plans::check(&open.store.url, statements.keys()).await;
}

#[on_both_engines]
async fn writes_of_one_piece_never_lose_an_update(store: TestStore) {
    let open = Arc::new(OpenStore::new(store).await);
    let (workspace, piece) = (open.workspace, open.piece("a", None));
    let new = piece.clone();
    let insert =
        async move |tx: &WriteTx<'_>| content_pieces::insert(tx, workspace, &new, "{}").await;
    open.database.write::<_, Error, _>("insert", insert).await.unwrap();
    let tasks: Vec<_> = (0..60)
        .map(|number| {
            let (open, piece) = (Arc::clone(&open), piece.clone());
            tokio::spawn(async move {
                let keys = Some(vec![WriteKey::of(piece.id)]);
                let write = async move |tx: &WriteTx<'_>| increment(tx, workspace, &piece).await;
                // Every third is a transaction of its own, like a write of another node.
                if number % 3 == 0 {
                    open.database.write::<_, Error, _>("increment", write).await
                } else {
                    open.database.write_grouped::<_, Error, _>("increment", keys, write).await
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    portability::check(open.log.take().keys());
    let find = async move |tx: &Tx<'_>| content_pieces::find(tx, workspace, piece.id).await;
    let found = open.database.read::<_, Error, _>("find", find).await.unwrap().unwrap();
    assert_eq!(found.version, 61);
    assert_eq!(open.sequences(workspace).await, (1..=60).collect::<Vec<_>>());
}

#[on_both_engines]
async fn a_failure_in_a_group_affects_no_other_write(store: TestStore) {
    let open = Arc::new(OpenStore::new(store).await);
    let first = open.piece("first", None);
    let (workspace, taken) = (open.workspace, first.id);
    let insert =
        async move |tx: &WriteTx<'_>| content_pieces::insert(tx, workspace, &first, "{}").await;
    open.database.write::<_, Error, _>("insert", insert).await.unwrap();
    let tasks: Vec<_> = (0..120_u32)
        .map(|number| {
            let open = Arc::clone(&open);
            tokio::spawn(async move {
                let mut piece = open.piece("a", None);
                if number % 20 == 5 {
                    piece.id = taken;
                }
                let write = async move |tx: &WriteTx<'_>| {
                    if number % 20 == 7 {
                        return Err(WriteError::Rejected);
                    }
                    create(tx, workspace, &piece, number).await?;
                    assert!(number % 20 != 9, "this one panics, as the test wants");
                    if number % 20 == 11 { Err(WriteError::Rejected) } else { Ok(()) }
                };
                open.database.write_grouped("may fail", Some(Vec::new()), write).await
            })
        })
        .collect();
    let mut kept = 0;
    for (number, task) in tasks.into_iter().enumerate() {
        let ended = task.await;
        match number % 20 {
            5 => assert!(matches!(ended, Ok(Err(WriteError::Storage(_)))), "{ended:?}"),
            7 | 11 => assert!(matches!(ended, Ok(Err(WriteError::Rejected))), "{ended:?}"),
            9 => assert!(!matches!(ended, Ok(Ok(()))), "{ended:?}"),
            _ => {
                assert!(matches!(ended, Ok(Ok(()))), "{ended:?}");
                kept += 1;
            }
        }
    }
    assert_eq!(open.count("content_pieces").await, 1 + kept);
    assert_eq!(open.sequences(workspace).await, (1..=kept).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_group_does_not_wait_for_a_row_that_another_transaction_has_locked() {
    let Some(store) = TestStore::postgres().await else { return };
    let open = Arc::new(OpenStore::new(store).await);
    let (workspace, locked, free) = (open.workspace, open.piece("a", None), open.piece("b", None));
    let free = ContentPiece { order: locked.order.clone(), ..free };
    let both = [locked.clone(), free.clone()];
    let insert = async move |tx: &WriteTx<'_>| {
        for (piece, random) in both.iter().zip(0..) {
            create(tx, workspace, piece, random).await?;
        }
        Ok(())
    };
    open.database.write::<_, Error, _>("insert", insert).await.unwrap();
    open.log.take();
    let (release, released) = watch::channel(false);
    let (locks, mut is_locked) = watch::channel(false);
    let holder = tokio::spawn({
        let (open, locked) = (Arc::clone(&open), locked.clone());
        async move {
            let hold = async move |tx: &WriteTx<'_>| {
                content_pieces::find_for_update(tx, workspace, locked.id).await?;
                locks.send_replace(true);
                drop(released.clone().wait_for(|released| *released).await);
                Ok(())
            };
            open.database.write::<_, Error, _>("hold", hold).await
        }
    });
    is_locked.wait_for(|is_locked| *is_locked).await.unwrap();
    let update = |piece: ContentPiece| {
        let open = Arc::clone(&open);
        tokio::spawn(async move {
            let keys = Some(vec![WriteKey::of(piece.id)]);
            let write = async move |tx: &WriteTx<'_>| increment(tx, workspace, &piece).await;
            open.database.write_grouped::<_, Error, _>("increment", keys, write).await
        })
    };
    let waiting = update(locked);
    for _ in 0..3 {
        update(free.clone()).await.unwrap().unwrap();
    }
    assert!(!waiting.is_finished());
    release.send_replace(true);
    holder.await.unwrap().unwrap();
    waiting.await.unwrap().unwrap();
    // Only the write of the locked piece has left its group and run alone.
    let statements = open.log.take();
    let locks = statements.iter().filter(|(sql, _)| sql.ends_with(" FOR UPDATE"));
    assert_eq!(locks.map(|(_, count)| count).sum::<u64>(), 2);
    assert_eq!(open.sequences(workspace).await, (1..=6).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_cancelled_write_rolls_back_its_group_and_the_others_run_again() {
    let Some(store) = TestStore::postgres().await else { return };
    let open = Arc::new(OpenStore::new(store).await);
    let workspace = open.workspace;
    let (runs, mut is_running) = watch::channel(false);
    let (inserts, mut has_inserted) = watch::channel(false);
    // A write of one group runs while the next group fills. It ends when all others wait.
    let (release, released) = watch::channel(false);
    let write = |number: u32, is_cancelled: bool| {
        let (open, runs, inserts) = (Arc::clone(&open), runs.clone(), inserts.clone());
        let released = released.clone();
        tokio::spawn(async move {
            let piece = open.piece("a", None);
            let write = async move |tx: &WriteTx<'_>| {
                create(tx, workspace, &piece, number).await?;
                if is_cancelled {
                    inserts.send_replace(true);
                    std::future::pending::<()>().await;
                }
                if number == 0 {
                    runs.send_replace(true);
                    drop(released.clone().wait_for(|released| *released).await);
                }
                Ok(())
            };
            let keys = Some(Vec::new());
            open.database.write_grouped::<_, Error, _>("create", keys, write).await
        })
    };
    let first = write(0, false);
    is_running.wait_for(|is_running| *is_running).await.unwrap();
    let cancelled = write(1, true);
    let others: Vec<_> = (2..12).map(|number| write(number, false)).collect();
    release.send_replace(true);
    first.await.unwrap().unwrap();
    has_inserted.wait_for(|has_inserted| *has_inserted).await.unwrap();
    cancelled.abort();
    assert!(cancelled.await.unwrap_err().is_cancelled());
    for other in others {
        other.await.unwrap().unwrap();
    }
    assert_eq!(open.count("content_pieces").await, 11);
    assert_eq!(open.count("content_piece_contents").await, 11);
    assert_eq!(open.sequences(workspace).await, (1..=11).collect::<Vec<_>>());
}
