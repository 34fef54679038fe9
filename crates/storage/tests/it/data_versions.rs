//! Validity of cached reads on SQLite, by data versions.

use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use galley_domain::WorkspaceId;
use galley_storage::{Database, Error, ProcessRole, WriteTx, tokens, workspaces};
use galley_testing::TestStore;

use crate::store::{NOW, OpenStore, id, options};

async fn rename(database: &Database, workspace: WorkspaceId, name: String) -> Result<(), Error> {
    let write = async move |tx: &WriteTx<'_>| {
        let mut found = workspaces::find(tx, workspace).await?.unwrap();
        found.description = Some(galley_domain::text::ShortText::parse(&name).unwrap());
        workspaces::update(tx, &found).await
    };
    database.write("rename", write).await
}

async fn add_workspace(database: &Database) -> WorkspaceId {
    let workspace = WorkspaceId::new(id());
    let write = async move |tx: &WriteTx<'_>| workspaces::insert(tx, workspace, "Other", NOW).await;
    database.write::<_, Error, _>("add", write).await.unwrap();
    workspace
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_invalidates_only_its_own_workspace() {
    let open = OpenStore::new(TestStore::sqlite()).await;
    let (database, own) = (&open.database, open.workspace);
    let other = add_workspace(database).await;
    let last = |workspace| database.last_modified(workspace).unwrap();
    let moment = database.data_version().unwrap();
    assert!(last(own).is_unchanged_since(moment) && last(other).is_unchanged_since(moment));
    rename(database, own, "a".to_owned()).await.unwrap();
    assert!(!last(own).is_unchanged_since(moment));
    assert!(last(other).is_unchanged_since(moment));
    let after = database.data_version().unwrap();
    assert!(last(own).is_unchanged_since(after) && after > moment);

    // Writes that are rolled back, change nothing, or change no visible column invalidate nothing.
    let undone = async move |tx: &WriteTx<'_>| {
        let found = workspaces::find(tx, own).await?.unwrap();
        workspaces::update(tx, &found).await?;
        Err::<(), _>(Error::Conflict)
    };
    assert!(database.write("undone", undone).await.is_err());
    let unseen = async move |tx: &WriteTx<'_>| {
        tokens::record_use(tx, own, galley_domain::TokenId::new(1), NOW).await?;
        tokens::delete(tx, own, galley_domain::TokenId::new(1)).await.map(drop)
    };
    database.write::<_, Error, _>("unseen", unseen).await.unwrap();
    let now = database.data_version().unwrap();
    assert!(last(own).is_unchanged_since(now) && last(other).is_unchanged_since(after));
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_of_other_processes_invalidate_all_workspaces() {
    let open = OpenStore::new(TestStore::sqlite()).await;
    let (database, own) = (&open.database, open.workspace);
    let other = add_workspace(database).await;
    let beside =
        Database::open(options(open.store.url.clone(), ProcessRole::Command)).await.unwrap();
    for number in 0..50 {
        let moment = database.data_version().unwrap();
        rename(&beside, other, format!("{number}")).await.unwrap();
        let now = database.data_version().unwrap();
        for workspace in [own, other] {
            assert!(
                !database.last_modified(workspace).unwrap().is_unchanged_since(moment),
                "{number}"
            );
            assert!(database.last_modified(workspace).unwrap().is_unchanged_since(now), "{number}");
        }
        // This also holds if no read came before this database's own next commit.
        let moment = database.data_version().unwrap();
        rename(&beside, other, format!("{number} again")).await.unwrap();
        rename(database, own, format!("{number}")).await.unwrap();
        assert!(!database.last_modified(other).unwrap().is_unchanged_since(moment), "{number}");
    }
}

/// A process that is killed while it writes the WAL index's header leaves an invalid header. SQLite
/// then rebuilds the index, and its change counter restarts.
#[tokio::test(flavor = "multi_thread")]
async fn a_rebuilt_wal_index_invalidates_all_workspaces() {
    let open = OpenStore::new(TestStore::sqlite()).await;
    let (database, own) = (&open.database, open.workspace);
    let beside =
        Database::open(options(open.store.url.clone(), ProcessRole::Command)).await.unwrap();
    let mut index = database.path().unwrap().as_os_str().to_owned();
    index.push("-shm");
    for number in 0..5 {
        for _ in 0..5 {
            rename(database, own, format!("before {number}")).await.unwrap();
        }
        let moment = database.data_version().unwrap();
        // The file is never closed, as closing it would release this process's locks.
        let file = std::fs::OpenOptions::new().write(true).open(&index).unwrap();
        file.write_all_at(&[0; 4], 40).unwrap();
        std::mem::forget(file);
        assert_eq!(database.data_version(), None, "half a header says nothing");
        rename(&beside, own, format!("after {number}")).await.unwrap();
        let now = database.data_version().unwrap();
        assert!(now > moment);
        assert!(!database.last_modified(own).unwrap().is_unchanged_since(moment), "{number}");
        assert!(database.last_modified(own).unwrap().is_unchanged_since(now), "{number}");
        rename(database, own, format!("own {number}")).await.unwrap();
        assert!(!database.last_modified(own).unwrap().is_unchanged_since(now), "{number}");
        assert!(
            database
                .last_modified(own)
                .unwrap()
                .is_unchanged_since(database.data_version().unwrap())
        );
    }
}

/// Cached reads beside writers of both kinds are never older than the last acknowledged write.
#[tokio::test(flavor = "multi_thread")]
async fn cached_reads_are_never_older_than_an_acknowledged_write() {
    let open = OpenStore::new(TestStore::sqlite()).await;
    let (database, own) = (open.database.clone(), open.workspace);
    let beside =
        Database::open(options(open.store.url.clone(), ProcessRole::Command)).await.unwrap();
    rename(&database, own, "0".to_owned()).await.unwrap();
    let (answered, done) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicBool::new(false)));
    let mut readers = Vec::new();
    for _ in 0..3 {
        let (database, answered, done) =
            (database.clone(), Arc::clone(&answered), Arc::clone(&done));
        readers.push(tokio::spawn(async move {
            let (mut remembered, mut hits) = (None, 0);
            while !done.load(Ordering::SeqCst) {
                let least = answered.load(Ordering::SeqCst);
                let moment = database.data_version();
                let holds = |(at, _): &(_, i64)| {
                    database.last_modified(own).unwrap().is_unchanged_since(*at)
                };
                let number = match (moment, remembered.filter(holds)) {
                    (Some(_), Some((_, number))) => {
                        hits += 1;
                        number
                    }
                    _ => {
                        let read = async move |tx: &galley_storage::Tx<'_>| {
                            Ok::<_, Error>(
                                workspaces::find(tx, own).await?.unwrap().description.unwrap(),
                            )
                        };
                        let number =
                            database.read("read", read).await.unwrap().as_str().parse().unwrap();
                        remembered = moment.map(|moment| (moment, number));
                        number
                    }
                };
                assert!(number >= least, "{number} after {least} was answered");
                tokio::task::yield_now().await;
            }
            hits
        }));
    }
    for number in 1..=1_500 {
        let database = if number % 7 == 0 { &beside } else { &database };
        rename(database, own, number.to_string()).await.unwrap();
        answered.store(number, Ordering::SeqCst);
        if number % 3 == 0 {
            tokio::time::sleep(std::time::Duration::from_micros(300)).await;
        }
    }
    done.store(true, Ordering::SeqCst);
    let mut hits = 0;
    for reader in readers {
        hits += reader.await.unwrap();
    }
    assert!(hits > 1_000, "nothing was remembered: {hits}");
}
