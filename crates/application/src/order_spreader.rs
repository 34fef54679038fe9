//! Spreads out order keys that have grown long, in the background.

use std::time::Duration;

use galley_domain::WorkspaceId;
use galley_storage::order_key_spread::{self, PendingSpread, SpreadPlan};
use galley_storage::{Tx, WriteTx};

use crate::error::Error;
use crate::operations::content_pieces;
use crate::service::Service;

/// The interval between two scans: after a commit of this program, and without commits.
const BUSY_INTERVAL: Duration = Duration::from_millis(50);
const IDLE_INTERVAL: Duration = Duration::from_secs(1);

/// The limit on slices of a workspace before other workspaces are served.
const SLICES_MAX: usize = 32;

/// Spreads out order keys as long as the service runs.
pub(crate) async fn run(service: &Service) {
    let mut committed = service.database().subscribe_to_commits();
    loop {
        if let Err(error) = spread_pending(service).await {
            tracing::debug!(%error, "order keys to spread out could not be listed");
        }
        tokio::time::sleep(BUSY_INTERVAL).await;
        let _ = tokio::time::timeout(IDLE_INTERVAL, committed.changed()).await;
    }
}

/// Spreads out some pieces of each workspace that has long keys.
async fn spread_pending(service: &Service) -> Result<(), Error> {
    let mut after = None;
    loop {
        let list = async move |tx: &Tx<'_>| {
            Ok::<_, Error>(order_key_spread::pending_spreads(tx, after).await?)
        };
        let pending = service.database().read("ordering.pending", list).await?;
        let Some(end) = pending.last() else { return Ok(()) };
        after = Some(end.workspace);
        for one in pending {
            let workspace = one.workspace;
            if let Err(error) = spread(service, one).await {
                tracing::warn!(%error, %workspace, "order keys could not be spread out");
            }
        }
    }
}

async fn spread(service: &Service, pending: PendingSpread) -> Result<(), Error> {
    let workspace = pending.workspace;
    let plan = match pending.unplanned {
        Some(around) => {
            let environment = service.environment().clone();
            let plan = async move |tx: &Tx<'_>| {
                let random = || environment.random();
                Ok::<_, Error>(order_key_spread::plan_spread(tx, workspace, &around, random).await?)
            };
            Some(service.database().read_long("ordering.plan", plan).await?)
        }
        None => None,
    };
    for _ in 0..SLICES_MAX {
        if !spread_slice(service, workspace, plan.clone()).await? {
            break;
        }
    }
    Ok(())
}

async fn spread_slice(
    service: &Service,
    workspace: WorkspaceId,
    plan: Option<SpreadPlan>,
) -> Result<bool, Error> {
    let environment = service.environment().clone();
    let write = async move |tx: &WriteTx<'_>| {
        content_pieces::spread_order_keys(tx, &environment, workspace, plan.as_ref()).await
    };
    service.database().write_in_background("ordering.spread", write).await
}
