//! Test infrastructure of the other crates: a new database for each test, on either engine, and
//! webhook receivers.
//!
//! PostgreSQL databases are created in the server that `GALLEY_TEST_POSTGRES_URL` names. `cargo
//! xtask test` starts it and sets the variable. Without it, the tests on PostgreSQL report that
//! they are skipped.

pub mod locks;
pub mod open_loop;
mod postgres;
mod receiver;
pub mod reliability_suite;
mod store;

pub use galley_testing_macros::on_both_engines;
pub use postgres::{PostgresServer, free_port};
pub use receiver::{Behaviour, ReceivedRequest, Receiver};
pub use store::{TestStore, report_skipped};

/// Runs a test on a new SQLite database.
pub fn run_on_sqlite<T: Future<Output = ()>>(test: impl FnOnce(TestStore) -> T) {
    block_on(test(TestStore::sqlite()));
}

/// Runs a test on a new PostgreSQL database, or reports that it is skipped.
pub fn run_on_postgres<T: Future<Output = ()>>(test: impl FnOnce(TestStore) -> T) {
    block_on(async {
        if let Some(store) = TestStore::postgres().await {
            test(store).await;
        }
    });
}

fn block_on(test: impl Future<Output = ()>) {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build();
    runtime.expect("a runtime can be created").block_on(test);
}
