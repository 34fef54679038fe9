//! Periodic tasks besides the requests: deletion of expired rows, and measurements.

use std::time::Duration;

use galley_domain::Timestamp;
use galley_domain::delivery::RETENTION;
use galley_storage::idempotency::RETENTION_MS;
use galley_storage::{
    Database, Error as StorageError, Tx, WriteTx, delivery_queue, event_tickets, events,
    idempotency, mails, preview_tokens, sessions, sign_ins, workspaces,
};

use crate::environment::Environment;
use crate::operations::{
    asset_files, asset_uploads, audit, content_pieces, scheduled_publishing, sign_in, trash,
};
use crate::order_spreader;
use crate::service::Service;

/// The interval between two deletions of expired rows.
const RETENTION_CHECK_INTERVAL: Duration = Duration::from_mins(10);

/// The limit on rows that one transaction deletes, so that it doesn't block other writes for long.
const ROWS_PER_TRANSACTION: i64 = 1_000;

/// The pause between two such transactions, in which other writes proceed.
const TRANSACTION_INTERVAL: Duration = Duration::from_millis(50);

/// The interval between two searches for autosaves whose events are due.
const AUTOSAVE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The interval between two searches for pieces that are to be published or unpublished.
const SCHEDULE_CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// The interval between two removals of expired revisions.
const REVISION_CHECK_INTERVAL: Duration = Duration::from_hours(24);

/// The interval between two removals of expired entries of the trash.
const TRASH_CHECK_INTERVAL: Duration = Duration::from_hours(1);

/// The interval between two removals of expired entries of the audit log.
const AUDIT_CHECK_INTERVAL: Duration = Duration::from_hours(1);

/// The interval between two removals of files without an asset.
const LEFTOVER_CHECK_INTERVAL: Duration = Duration::from_mins(10);

/// The interval at which the numbers of rejected credentials are stored.
const REJECTED_CREDENTIALS_INTERVAL: Duration = Duration::from_secs(5);

/// The interval between two measurements.
const MEASURE_INTERVAL: Duration = Duration::from_secs(10);

/// Deletes expired rows, sets gauges and spreads out order keys, as long as the service runs.
pub async fn run(service: Service) {
    tokio::join!(
        delete_expired_periodically(&service),
        measure_periodically(&service),
        order_spreader::run(&service),
        raise_autosave_events(&service),
        run_schedules(&service),
        remove_expired_revisions(&service),
        remove_expired_trash(&service),
        remove_expired_audit(&service),
        remove_leftover_files(&service),
        store_rejected_credentials(&service)
    );
}

/// Raises the events of autosaves that are due.
async fn raise_autosave_events(service: &Service) {
    loop {
        match content_pieces::raise_due_events(service).await {
            Ok(true) => continue,
            Ok(false) => {}
            Err(error) => tracing::warn!(%error, "events of autosaves could not be raised"),
        }
        tokio::time::sleep(AUTOSAVE_CHECK_INTERVAL).await;
    }
}

/// Publishes and unpublishes pieces at their scheduled times.
async fn run_schedules(service: &Service) {
    loop {
        match scheduled_publishing::run_due(service).await {
            Ok(true) => continue,
            Ok(false) => {}
            Err(error) => tracing::warn!(%error, "schedules could not be run"),
        }
        tokio::time::sleep(SCHEDULE_CHECK_INTERVAL).await;
    }
}

async fn remove_expired_revisions(service: &Service) {
    let (database, environment) = (service.database(), service.environment());
    let retention = service.settings().revision_retention;
    loop {
        let removed =
            content_pieces::remove_expired_revisions(database, environment, retention).await;
        if let Err(error) = removed {
            tracing::warn!(%error, "expired revisions could not be removed");
        }
        tokio::time::sleep(REVISION_CHECK_INTERVAL).await;
    }
}

async fn remove_expired_trash(service: &Service) {
    let (database, environment) = (service.database(), service.environment());
    let retention = service.settings().trash_retention_days;
    loop {
        if let Err(error) = trash::remove_expired(database, environment, retention).await {
            tracing::warn!(%error, "expired entries of the trash could not be removed");
        }
        tokio::time::sleep(TRASH_CHECK_INTERVAL).await;
    }
}

/// Removes expired uploads, and files of assets that uploads and deletions have left.
async fn remove_leftover_files(service: &Service) {
    loop {
        if let Err(error) = asset_uploads::remove_expired(service).await {
            tracing::warn!(%error, "expired uploads could not be removed");
        }
        match asset_files::remove_leftovers(service).await {
            Ok(0) => {}
            Ok(removed) => tracing::info!(removed, "removed files of assets without an asset"),
            Err(error) => tracing::warn!(%error, "files without an asset could not be removed"),
        }
        tokio::time::sleep(LEFTOVER_CHECK_INTERVAL).await;
    }
}

/// Removes expired entries of the audit log, and addresses.
async fn remove_expired_audit(service: &Service) {
    let (database, environment) = (service.database(), service.environment());
    let mut addresses_removed_before = Timestamp::from_ms(0);
    loop {
        let since = addresses_removed_before;
        match audit::remove_expired(database, environment, since).await {
            Ok(before) => addresses_removed_before = before,
            Err(error) => tracing::warn!(%error, "the audit log could not be shortened"),
        }
        tokio::time::sleep(AUDIT_CHECK_INTERVAL).await;
    }
}

/// Stores the numbers of requests with rejected credentials.
async fn store_rejected_credentials(service: &Service) {
    loop {
        tokio::time::sleep(REJECTED_CREDENTIALS_INTERVAL).await;
        let rejected = service.rejected_credentials();
        if let Err(error) = rejected.store(service.database(), service.environment()).await {
            tracing::warn!(%error, "the numbers of rejected credentials could not be stored");
        }
    }
}

async fn delete_expired_periodically(service: &Service) {
    loop {
        if let Err(error) = delete_expired_keys(service.database(), service.environment()).await {
            tracing::warn!(%error, "expired idempotency keys could not be deleted");
        }
        if let Err(error) = delete_expired_tickets(service.database(), service.environment()).await
        {
            tracing::warn!(%error, "expired tickets of event streams could not be deleted");
        }
        if let Err(error) =
            delete_expired_deliveries(service.database(), service.environment()).await
        {
            tracing::warn!(%error, "expired events and deliveries could not be deleted");
        }
        if let Err(error) = delete_abandoned_mails(service.database(), service.environment()).await
        {
            tracing::warn!(%error, "abandoned mails could not be deleted");
        }
        tokio::time::sleep(RETENTION_CHECK_INTERVAL).await;
    }
}

/// Deletes abandoned mails whose retention has ended.
async fn delete_abandoned_mails(
    database: &Database,
    environment: &Environment,
) -> Result<(), StorageError> {
    let retention_ms = i64::try_from(RETENTION.as_millis()).unwrap_or(i64::MAX);
    let before = Timestamp::from_ms(environment.now().ms() - retention_ms);
    let delete = async move |tx: &WriteTx<'_>| {
        mails::delete_abandoned(tx, before, ROWS_PER_TRANSACTION).await
    };
    while database.write("mails.delete_expired", delete).await? > 0 {}
    Ok(())
}

async fn delete_expired_keys(
    database: &Database,
    environment: &Environment,
) -> Result<(), StorageError> {
    let before = Timestamp::from_ms(environment.now().ms() - RETENTION_MS);
    let delete = async move |tx: &WriteTx<'_>| {
        idempotency::delete_expired(tx, before, ROWS_PER_TRANSACTION).await
    };
    while database.write("idempotency.delete_expired", delete).await? > 0 {}
    Ok(())
}

async fn delete_expired_tickets(
    database: &Database,
    environment: &Environment,
) -> Result<(), StorageError> {
    let now = environment.now();
    let delete = async move |tx: &WriteTx<'_>| {
        event_tickets::delete_expired(tx, now, ROWS_PER_TRANSACTION).await
    };
    while database.write("event_tickets.delete_expired", delete).await? > 0 {}
    let delete = async move |tx: &WriteTx<'_>| {
        preview_tokens::delete_expired(tx, now, ROWS_PER_TRANSACTION).await
    };
    while database.write("preview_tokens.delete_expired", delete).await? > 0 {}
    let delete =
        async move |tx: &WriteTx<'_>| sessions::delete_expired(tx, now, ROWS_PER_TRANSACTION).await;
    while database.write("sessions.delete_expired", delete).await? > 0 {}
    // The requests of the last hour count for the limits of their addresses.
    let before = now.earlier(sign_in::LIMIT_PERIOD);
    let delete = async move |tx: &WriteTx<'_>| {
        sign_ins::delete_expired(tx, before, ROWS_PER_TRANSACTION).await
    };
    while database.write("sign_ins.delete_expired", delete).await? > 0 {}
    Ok(())
}

/// Deletes expired deliveries before events: the data of a pending delivery is stored with its
/// event.
async fn delete_expired_deliveries(
    database: &Database,
    environment: &Environment,
) -> Result<(), StorageError> {
    let orphans = async move |tx: &WriteTx<'_>| {
        delivery_queue::delete_orphans(tx, ROWS_PER_TRANSACTION).await
    };
    while database.write("deliveries.delete_orphans", orphans).await? > 0 {
        tokio::time::sleep(TRANSACTION_INTERVAL).await;
    }
    let kept = i64::try_from(RETENTION.as_millis()).unwrap_or(i64::MAX);
    let before = Timestamp::from_ms(environment.now().ms() - kept);
    let list = async |tx: &Tx<'_>| workspaces::list(tx).await;
    for (workspace, _) in database.read_long("workspaces.list", list).await? {
        let deliveries = async move |tx: &WriteTx<'_>| {
            delivery_queue::delete_expired(tx, workspace, before, ROWS_PER_TRANSACTION).await
        };
        while database.write("deliveries.delete_expired", deliveries).await? > 0 {
            tokio::time::sleep(TRANSACTION_INTERVAL).await;
        }
        let events = async move |tx: &WriteTx<'_>| {
            events::delete_expired(tx, workspace, before, ROWS_PER_TRANSACTION).await
        };
        while database.write("events.delete_expired", events).await? > 0 {
            tokio::time::sleep(TRANSACTION_INTERVAL).await;
        }
    }
    Ok(())
}

/// Sets the gauges of webhook queues, of mails and of the database's files, at an interval.
async fn measure_periodically(service: &Service) {
    loop {
        let now = service.environment().now();
        measure_mails(service).await;
        measure_files(service.database().check_files().is_ok());
        let read = async move |tx: &Tx<'_>| delivery_queue::queue_metrics(tx, now).await;
        match service.database().read::<_, StorageError, _>("deliveries.gauges", read).await {
            Ok(found) => {
                let overdue = found.next_at.map_or(0, |next| now.ms().saturating_sub(next.ms()));
                #[expect(clippy::cast_precision_loss, reason = "gauges are floats")]
                for (name, value) in [
                    ("galley_webhook_deliveries_pending", found.pending as f64),
                    ("galley_webhook_deliveries_paused", found.paused as f64),
                    ("galley_webhook_circuit_breakers_open", found.open as f64),
                    ("galley_webhook_oldest_overdue_seconds", overdue.max(0) as f64 / 1_000.0),
                ] {
                    metrics::gauge!(name).set(value);
                }
            }
            Err(error) => tracing::debug!(%error, "the delivery metrics could not be read"),
        }
        tokio::time::sleep(MEASURE_INTERVAL).await;
    }
}

/// Sets the gauge that is 1 if the database's files are not those that the server has open.
pub fn measure_files(are_own: bool) {
    metrics::gauge!("galley_database_files_detached").set(f64::from(u8::from(!are_own)));
}

#[expect(clippy::cast_precision_loss, reason = "gauges are floats")]
async fn measure_mails(service: &Service) {
    let read = async |tx: &Tx<'_>| mails::counts(tx).await;
    match service.database().read::<_, StorageError, _>("mails.counts", read).await {
        Ok((waiting, abandoned)) => {
            metrics::gauge!("galley_mails_waiting").set(waiting as f64);
            metrics::gauge!("galley_mails_abandoned").set(abandoned as f64);
        }
        Err(error) => tracing::debug!(%error, "the mail metrics could not be read"),
    }
}
