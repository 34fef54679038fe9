//! The publication of pieces at scheduled times.
//!
//! Each node runs due schedules. A piece is locked before its schedule is read, and the schedule is
//! removed in the transaction that publishes, so each schedule runs once.

use galley_domain::Timestamp;
use galley_domain::content_piece::ContentPiece;
use galley_domain::publication::Publication;
use galley_domain::revision::Origin;
use galley_storage::published_pieces::{self, DuePiece};
use galley_storage::{Failure, Tx, WriteTx, content_pieces, ordering};

use crate::environment::Environment;
use crate::error::Error;
use crate::operations::content_pieces::{
    lock_variants, publish_piece, record_schedule, unpublish_piece,
};
use crate::scope::Scope;
use crate::service::Service;

/// The limit on pieces of one round.
const DUE_MAX: i64 = 100;

/// Publishes and unpublishes the pieces that are due, each step in its own transaction. Returns
/// true if more may be due.
pub async fn run_due(service: &Service) -> Result<bool, Error> {
    let (database, environment) = (service.database(), service.environment());
    let now = environment.now();
    let find =
        async move |tx: &Tx<'_>| Ok::<_, Error>(published_pieces::due(tx, now, DUE_MAX).await?);
    let due = database.read("publishing.due", find).await?;
    let mut completed = 0;
    for &one in &due {
        match run_steps(service, one, now).await {
            Ok(()) => completed += 1,
            Err(error) => {
                tracing::warn!(%error, piece = %one.1, "a schedule could not be run");
            }
        }
    }
    Ok(completed >= DUE_MAX)
}

/// Runs the steps of a piece's schedule that are due, in the order of their times.
async fn run_steps(service: &Service, one: DuePiece, now: Timestamp) -> Result<(), Error> {
    let (database, environment) = (service.database(), service.environment());
    loop {
        let own = environment.clone();
        let run = async move |tx: &WriteTx<'_>| run_step(tx, &own, one, now).await;
        match database.write("publishing.run", run).await {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(error) if error.storage_error().is_some() => return Err(error),
            Err(error) => {
                tracing::error!(%error, piece = %one.1, "a scheduled publication was cancelled");
                let own = environment.clone();
                let cancel = async move |tx: &WriteTx<'_>| cancel(tx, &own, one, now).await;
                database.write("publishing.cancel", cancel).await?;
            }
        }
    }
}

/// Runs the first step that is due. Returns false if there is none.
async fn run_step(
    tx: &WriteTx<'_>,
    environment: &Environment,
    (workspace, id): DuePiece,
    now: Timestamp,
) -> Result<bool, Error> {
    let scope = Scope { origin: Origin::Schedule, ..Scope::whole(workspace) };
    ordering::lock(tx, workspace).await?;
    let planned = content_pieces::find(tx, workspace, id).await?;
    let number = planned.and_then(|piece| piece.publication.publish_revision);
    lock_variants(tx, &scope, id, number).await?;
    // Another node may have run the schedule, or a client may have changed it.
    let found = content_pieces::find_for_update(tx, workspace, id).await?;
    let Some((piece, _)) = found else { return Ok(false) };
    let before = piece.publication;
    let is_due = |time: Option<Timestamp>| time.filter(|&time| time <= now);
    let publishes = match (is_due(before.publish_at), is_due(before.unpublish_at)) {
        (None, None) => return Ok(false),
        (Some(publish), Some(unpublish)) => publish <= unpublish,
        (publish, _) => publish.is_some(),
    };
    let publication = if publishes {
        Publication { publish_at: None, publish_revision: None, ..before }
    } else {
        Publication { unpublish_at: None, ..before }
    };
    published_pieces::update_publication(tx, workspace, id, &publication).await?;
    let piece = ContentPiece { publication, ..piece };
    if publishes {
        publish_piece(tx, environment, &scope, &piece, before.publish_revision).await?;
    } else {
        unpublish_piece(tx, environment, &scope, &piece).await?;
    }
    Ok(true)
}

/// Cancels a publication that is due. The end of a publication stays scheduled.
async fn cancel(
    tx: &WriteTx<'_>,
    environment: &Environment,
    (workspace, id): DuePiece,
    now: Timestamp,
) -> Result<(), Error> {
    let found = content_pieces::find_for_update(tx, workspace, id).await?;
    let Some((piece, _)) = found else { return Ok(()) };
    let publication = piece.publication;
    if publication.publish_at.is_none_or(|at| at > now) {
        return Ok(());
    }
    let publication = Publication { publish_at: None, publish_revision: None, ..publication };
    let scope = Scope::whole(workspace);
    record_schedule(tx, environment, &scope, id, piece.publication, publication);
    Ok(published_pieces::update_publication(tx, workspace, id, &publication).await?)
}
