//! What is done from time to time beside the requests.

use std::time::Duration;

use galley_domain::Timestamp;
use galley_storage::{Database, Error as StorageError, WriteTx, idempotency};

use crate::environment::Environment;
use crate::http::app::App;
use crate::http::idempotency::REMEMBERED_MS;

/// How long it rests in between.
const PAUSE: Duration = Duration::from_mins(10);

/// The most rows that are deleted in one transaction, so that nobody else's write waits long.
const BATCH: i64 = 1_000;

/// Forgets what is remembered for a time only, as long as the service runs.
pub(crate) async fn run(app: App) {
    loop {
        app.rate_limit().forget();
        if let Err(error) = forget_keys(app.database(), app.environment()).await {
            tracing::warn!(%error, "old idempotency keys were not forgotten");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn forget_keys(database: &Database, environment: &Environment) -> Result<(), StorageError> {
    let before = Timestamp::from_ms(environment.now().ms() - REMEMBERED_MS);
    let forget = async move |tx: &WriteTx<'_>| idempotency::forget(tx, before, BATCH).await;
    while database.write("idempotency.forget", forget).await? > 0 {}
    Ok(())
}
