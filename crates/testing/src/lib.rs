//! Test infrastructure of the other crates: a new database for each test, on either engine, and
//! webhook receivers, an object store, and generated numbers.
//!
//! PostgreSQL databases are created in the server that `GALLEY_TEST_POSTGRES_URL` names. `cargo
//! xtask test` starts it and sets the variable. Without it, the tests on PostgreSQL report that
//! they are skipped.

mod bucket_server;
pub mod locks;
mod numbers;
pub mod open_loop;
mod postgres;
mod receiver;
pub mod reliability_suite;
mod store;

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::runtime::{self, Runtime};

pub use bucket_server::BucketServer;
pub use galley_testing_macros::on_both_engines;
pub use numbers::Numbers;
pub use postgres::{PostgresServer, free_port};
pub use receiver::{Behaviour, ReceivedRequest, Receiver};
use store::TestFiles;
pub use store::{TestStore, report_skipped};

/// Runs a test on a new SQLite database.
pub fn run_on_sqlite<T: Future<Output = ()>>(test: impl FnOnce(TestStore) -> T) {
    run(runtime(), TestStore::sqlite(), test);
}

/// Runs a test on a new PostgreSQL database with the current schema, or reports that it is skipped.
pub fn run_on_postgres<T: Future<Output = ()>>(test: impl FnOnce(TestStore) -> T) {
    run_if_created(TestStore::postgres(), test);
}

/// Runs a test on an empty PostgreSQL database, or reports that it is skipped.
pub fn run_on_empty_postgres<T: Future<Output = ()>>(test: impl FnOnce(TestStore) -> T) {
    run_if_created(TestStore::empty_postgres(), test);
}

fn run_if_created<T: Future<Output = ()>>(
    store: impl Future<Output = Option<TestStore>>,
    test: impl FnOnce(TestStore) -> T,
) {
    let runtime = runtime();
    if let Some(store) = runtime.block_on(store) {
        run(runtime, store, test);
    }
}

fn runtime() -> Runtime {
    let mut builder = runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build();
    runtime.expect("a runtime can be created")
}

/// The number of finished tests whose storage is kept.
const KEPT_STORES: usize = 4;

/// The storage of the last finished tests. Their servers may still be stopping, and a server
/// copies a database whose file is deleted: the copy would stay on the disk.
static FINISHED: Mutex<VecDeque<Arc<TestFiles>>> = Mutex::new(VecDeque::new());

fn run<T: Future<Output = ()>>(
    runtime: Runtime,
    store: TestStore,
    test: impl FnOnce(TestStore) -> T,
) {
    let files = store.files();
    runtime.block_on(test(store));
    drop(runtime);
    let mut finished = FINISHED.lock();
    finished.push_back(files);
    let oldest = if finished.len() > KEPT_STORES { finished.pop_front() } else { None };
    drop(finished);
    drop(oldest);
}
