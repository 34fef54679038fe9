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

pub use postgres::{PostgresServer, free_port};
pub use receiver::{Behaviour, ReceivedRequest, Receiver};
pub use store::{TestStore, report_skipped};
#[doc(hidden)]
pub use tokio;

/// Declares a test that runs on both engines, as `<name>::sqlite` and `<name>::postgres`.
///
/// ```text
/// on_both_engines! {
///     async fn a_fact_holds(store: TestStore) {
///         …
///     }
/// }
/// ```
#[macro_export]
macro_rules! on_both_engines {
    ($($(#[$attribute:meta])* async fn $name:ident($store:ident: TestStore) $body:block)*) => {$(
        $(#[$attribute])*
        mod $name {
            #[allow(unused_imports, reason = "a test may need nothing of its module")]
            use super::*;

            async fn on_store($store: $crate::TestStore) $body

            fn on_runtime(test: impl Future<Output = ()>) {
                $crate::tokio::runtime::Builder::new_multi_thread()
                    .worker_threads(2)
                    .enable_all()
                    .build()
                    .expect("a runtime can be made")
                    .block_on(test);
            }

            #[test]
            fn sqlite() {
                on_runtime(on_store($crate::TestStore::sqlite()));
            }

            #[test]
            fn postgres() {
                on_runtime(async {
                    if let Some(store) = $crate::TestStore::postgres().await {
                        on_store(store).await;
                    }
                });
            }
        }
    )*};
}
