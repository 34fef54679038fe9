//! SQLite's open files: the locks on them, and the reaction to files that are moved or deleted.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use galley_domain::WorkspaceId;
use galley_storage::{Database, DatabaseUrl, Error, ProcessRole, WriteTx, workspaces};
use galley_testing::reliability_suite::size;
use galley_testing::{TestStore, locks};
use rusqlite::Connection;

use crate::store::{NOW, OpenStore, id, options};

async fn add_workspace(database: &Database) -> Result<(), Error> {
    let workspace = WorkspaceId::new(id());
    let insert =
        async move |tx: &WriteTx<'_>| workspaces::insert(tx, workspace, "Another", NOW).await;
    database.write::<_, Error, _>("add", insert).await
}

fn database_of(store: &TestStore) -> PathBuf {
    store.directory().join("galley.db")
}

/// Returns the number of this process's descriptors for the file at `path`.
fn descriptors(path: &Path) -> usize {
    let Ok(file) = fs::metadata(path) else { return 0 };
    let open = fs::read_dir("/proc/self/fd").unwrap().filter_map(Result::ok);
    let is_of_file = |entry: &fs::DirEntry| {
        // This follows the link without opening the file.
        fs::metadata(entry.path())
            .is_ok_and(|open| (open.dev(), open.ino()) == (file.dev(), file.ino()))
    };
    open.filter(is_of_file).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_keeps_its_locks_through_checkpoints_commands_and_backups() {
    let open = OpenStore::new(TestStore::sqlite()).await;
    let path = database_of(&open.store);
    let index = path.with_file_name("galley.db-shm");
    let is_locked = |when: &str| {
        for file in [&path, &index] {
            assert!(locks::are_held(std::process::id(), file), "{}: {when}", file.display());
        }
    };
    is_locked("after the start");
    let started = Instant::now();
    // This is longer than the checkpointer waits for a pause in writes.
    let length =
        size(Duration::from_millis(2_500), Duration::from_secs(10), Duration::from_hours(1));
    while started.elapsed() < length {
        add_workspace(&open.database).await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    is_locked("after checkpoints");
    let command =
        Database::open(options(open.store.url.clone(), ProcessRole::Command)).await.unwrap();
    add_workspace(&command).await.unwrap();
    is_locked("beside a command");
    command.close().await;
    is_locked("after a command");
    let backup = open.store.directory().join("a.backup");
    let of_server = options(open.store.url.clone(), ProcessRole::Server);
    galley_storage::back_up(&open.database, &of_server, &backup, |_| {}).await.unwrap();
    is_locked("after a backup");
    drop(open.database.snapshot().await.unwrap());
    is_locked("after a snapshot");
    // One descriptor is SQLite's, the other one reads the data version.
    assert_eq!(descriptors(&index), 2);
    open.database.close().await;
    drop(open.database);
    assert_eq!(descriptors(&path), 0, "a descriptor outlives the connections");
}

/// Moves or deletes files of an open database, and checks that writes fail and that the database is
/// rescued.
async fn assert_detached_and_rescued(take_away: fn(&Path)) {
    let open = OpenStore::new(TestStore::sqlite()).await;
    let directory = open.store.directory().join("data");
    // The database has its own directory, so that the whole directory can be replaced.
    fs::create_dir(&directory).unwrap();
    let path = directory.join("galley.db");
    let mut own = options(open.store.url.clone(), ProcessRole::Server);
    own.url = DatabaseUrl::Sqlite(path.clone());
    let database = Database::open(own).await.unwrap();
    for _ in 0..50 {
        add_workspace(&database).await.unwrap();
    }
    assert!(database.ping().await.is_ok());
    take_away(&path);
    let rejected = add_workspace(&database).await;
    assert!(matches!(rejected, Err(Error::Detached(_))), "{rejected:?}");
    assert!(matches!(database.ping().await, Err(Error::Detached(_))));
    let started = Instant::now();
    let rescued = loop {
        let files = fs::read_dir(&directory).into_iter().flatten().filter_map(Result::ok);
        let mut names = files.map(|file| file.file_name().into_string().unwrap());
        let is_rescued =
            |name: &String| name.starts_with("galley.db.rescued-") && !name.contains(".unfinished");
        if let Some(name) = names.find(is_rescued) {
            break directory.join(name);
        }
        assert!(started.elapsed() < Duration::from_secs(20), "nothing is rescued");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let connection = Connection::open(&rescued).unwrap();
    let check = "PRAGMA integrity_check";
    let found: String = connection.query_row(check, [], |row| row.get(0)).unwrap();
    assert_eq!(found, "ok");
    let count = "SELECT count(*) FROM workspaces";
    let found: i64 = connection.query_row(count, [], |row| row.get(0)).unwrap();
    assert_eq!(found, 50, "all that was answered is in the rescued file");
    assert_eq!(fs::metadata(&rescued).unwrap().mode() & 0o777, 0o600);
    // The server does not modify the file that is now at the path when it stops.
    let before = fs::read(&path).ok();
    let log = path.with_file_name("galley.db-wal");
    let log_before = fs::read(&log).ok();
    assert!(matches!(add_workspace(&database).await, Err(Error::Detached(_))));
    database.close().await;
    drop(database);
    assert!(fs::read(&path).ok() == before && fs::read(&log).ok() == log_before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_log_is_noticed_and_the_database_rescued() {
    assert_detached_and_rescued(|path| {
        fs::remove_file(path.with_file_name("galley.db-wal")).unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_index_is_noticed_and_the_database_rescued() {
    assert_detached_and_rescued(|path| {
        fs::remove_file(path.with_file_name("galley.db-shm")).unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_database_is_noticed_and_rescued() {
    assert_detached_and_rescued(|path| {
        let other = path.with_file_name("other.db");
        Connection::open(&other).unwrap().execute_batch("CREATE TABLE a (b)").unwrap();
        fs::rename(other, path).unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wal_written_by_another_program_is_left_unchanged() {
    assert_detached_and_rescued(|path| {
        for end in ["-wal", "-shm"] {
            fs::remove_file(path.with_file_name(format!("galley.db{end}"))).unwrap();
        }
        fs::write(path.with_file_name("galley.db-wal"), "another log").unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_directory_that_was_moved_away_is_noticed_and_its_database_rescued() {
    assert_detached_and_rescued(|path| {
        let directory = path.parent().unwrap();
        fs::rename(directory, directory.with_file_name("elsewhere")).unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_data_directory_is_noticed_and_its_database_rescued() {
    assert_detached_and_rescued(|path| {
        let directory = path.parent().unwrap();
        fs::rename(directory, directory.with_file_name("elsewhere")).unwrap();
        fs::create_dir(directory).unwrap();
        Connection::open(path).unwrap().execute_batch("CREATE TABLE a (b)").unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_behind_a_link_is_served() {
    let store = TestStore::sqlite();
    let link = database_of(&store);
    let target = store.directory().join("elsewhere.db");
    fs::write(&target, "").unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let database = Database::open(options(store.url.clone(), ProcessRole::Server)).await.unwrap();
    add_workspace(&database).await.unwrap();
    assert!(locks::are_held(std::process::id(), &target));
    // This is the same file under its own name.
    let by_name = DatabaseUrl::Sqlite(target);
    let second = Database::open(options(by_name.clone(), ProcessRole::Server)).await;
    assert!(matches!(second, Err(Error::Locked(_))), "{second:?}");
    let command = Database::open(options(by_name, ProcessRole::Command)).await.unwrap();
    assert!(command.is_served().await.unwrap());
    command.close().await;
    // A link that points to another file is noticed.
    let other = store.directory().join("other.db");
    fs::write(&other, "").unwrap();
    fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(&other, &link).unwrap();
    assert!(matches!(add_workspace(&database).await, Err(Error::Detached(_))));
    database.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_is_restored_into_the_target_of_a_link() {
    let open = OpenStore::new(TestStore::sqlite()).await;
    add_workspace(&open.database).await.unwrap();
    let backup = open.store.directory().join("a.backup");
    let of_server = options(open.store.url.clone(), ProcessRole::Server);
    galley_storage::back_up(&open.database, &of_server, &backup, |_| {}).await.unwrap();
    let store = TestStore::sqlite();
    let (link, target) = (database_of(&store), store.directory().join("elsewhere.db"));
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let of_command = options(store.url.clone(), ProcessRole::Command);
    galley_storage::restore(&backup, &of_command, |_| {}).await.unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    let count = "SELECT count(*) FROM workspaces";
    let restored = Connection::open(&target).unwrap();
    let found: i64 = restored.query_row(count, [], |row| row.get(0)).unwrap();
    assert!(found > 0, "the link's target is empty");
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_files_are_noticed_without_a_write() {
    let open = OpenStore::new(TestStore::sqlite()).await;
    fs::remove_file(open.store.directory().join("galley.db-wal")).unwrap();
    let started = Instant::now();
    let rescued = || {
        let files = fs::read_dir(open.store.directory()).unwrap().filter_map(Result::ok);
        files.map(|file| file.file_name()).any(|name| name.to_string_lossy().contains(".rescued-"))
    };
    while !rescued() {
        assert!(started.elapsed() < Duration::from_secs(20), "nothing is rescued");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
