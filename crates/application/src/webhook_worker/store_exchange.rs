//! One transaction with the store: results of attempts are recorded, events are fanned out into
//! deliveries, and deliveries that are due are leased.

use std::sync::Arc;
use std::time::Duration;

use galley_delivery::StoreRequest;
use galley_domain::{DeliveryId, Timestamp};
use galley_storage::delivery_queue::{
    self, AttemptResult, ClaimRequest, ClaimedDelivery, LockedQueues, ScanPosition,
};
use galley_storage::{Tx, WriteTx};

use crate::environment::Environment;
use crate::error::Error;
use crate::operations;
use crate::secrets::SecretKey;
use crate::service::Service;

/// The limits on deliveries that are fanned out in one step, in one step while other writers wait,
/// and in one transaction.
const EXPANDED_AT_A_TIME: usize = 64;
const EXPANDED_BESIDE_OTHERS: usize = 8;
const EXPANDED_MAX: usize = 256;

/// The duration of a lease: time for an attempt, for those queued before it, and a margin.
const LEASE_TIME: Duration = Duration::from_mins(1);

/// The result of an exchange.
pub(super) struct Exchange {
    pub(super) leased: Vec<ClaimedDelivery>,
    /// The results that are not recorded yet, as the transaction yielded to other writers.
    pub(super) left: Vec<AttemptResult>,
    /// True if the store may have more work.
    pub(super) more: bool,
}

/// The parts of an exchange. While the store is contended, an exchange may do only some of them. So
/// each part is the first one in turn.
#[derive(Clone, Copy)]
enum Part {
    Settle,
    Expand,
    Lease,
}

const PARTS: [Part; 3] = [Part::Settle, Part::Expand, Part::Lease];

/// Performs the exchange with number `turn`. On an error nothing was recorded, and the request is
/// returned.
pub(super) async fn with_store(
    service: &Service,
    front: &Arc<ScanPosition>,
    session: Arc<str>,
    ask: StoreRequest<AttemptResult>,
    turn: usize,
) -> Result<Exchange, (Error, StoreRequest<AttemptResult>)> {
    let ask = Arc::new(ask);
    let result = exchange(service, Arc::clone(front), session, Arc::clone(&ask), turn).await;
    result.map_err(|error| (error, Arc::unwrap_or_clone(ask)))
}

async fn exchange(
    service: &Service,
    front: Arc<ScanPosition>,
    session: Arc<str>,
    ask: Arc<StoreRequest<AttemptResult>>,
    turn: usize,
) -> Result<Exchange, Error> {
    let environment = service.environment().clone();
    let now = environment.now();
    if ask.attempt_results.is_empty() {
        let front = Arc::clone(&front);
        let look = async move |tx: &Tx<'_>| {
            Ok::<_, Error>(delivery_queue::has_work(tx, &front, now).await?)
        };
        if !service.database().read("deliveries.has_work", look).await? {
            return Ok(Exchange { leased: Vec::new(), left: Vec::new(), more: false });
        }
    }
    let key = service.key().clone();
    let write = async move |tx: &WriteTx<'_>| {
        let now = environment.now();
        let wants_more = ask.claim_max > 0 || ask.failing_claim_max > 0;
        let (mut lines, mut left, mut leased) = (LockedQueues::default(), None, Vec::new());
        let (mut more_to_expand, mut more_to_lease) = (wants_more, wants_more);
        let expanded_max = if wants_more { EXPANDED_MAX } else { 0 };
        delivery_queue::lock_queues_ahead(
            tx,
            &mut lines,
            &front,
            &ask.attempt_results,
            expanded_max,
        )
        .await?;
        let first = if tx.is_contended() { turn % PARTS.len() } else { 0 };
        for part in PARTS.iter().cycle().skip(first).take(PARTS.len()) {
            match part {
                Part::Settle if ask.attempt_results.is_empty() => continue,
                Part::Expand | Part::Lease if !wants_more => continue,
                Part::Settle => {
                    left = Some(
                        settle(tx, &mut lines, &environment, &key, &ask.attempt_results, now)
                            .await?,
                    );
                }
                Part::Expand => {
                    more_to_expand = expand(tx, &mut lines, &front, &environment, now).await?;
                    // If leasing came first, it has not seen the new deliveries.
                    more_to_lease = true;
                    delivery_queue::continue_recoveries(tx, &mut lines, now).await?;
                }
                Part::Lease => {
                    let request = lease_request(&environment, &session, &ask, now);
                    (leased, more_to_lease) =
                        delivery_queue::claim(tx, &mut lines, &front, &request).await?;
                }
            }
            if tx.should_yield() {
                break;
            }
        }
        lines.save(tx).await?;
        let left = left.unwrap_or_else(|| ask.attempt_results.clone());
        Ok::<_, Error>(Exchange { leased, left, more: more_to_expand || more_to_lease })
    };
    service.database().write_in_background("deliveries.exchange", write).await
}

/// Records results of attempts, and applies their consequences for webhooks. Returns the results
/// that are not recorded yet.
async fn settle(
    tx: &WriteTx<'_>,
    lines: &mut LockedQueues,
    environment: &Environment,
    key: &SecretKey,
    settlements: &[AttemptResult],
    now: Timestamp,
) -> Result<Vec<AttemptResult>, Error> {
    let random = || environment.random_part();
    let settled = delivery_queue::record_results(tx, lines, settlements, now, random).await?;
    for verdict in settled.receivers {
        operations::deliveries::judge(tx, environment, key, verdict).await?;
    }
    Ok(settled.deferred)
}

/// Fans out events into deliveries. Returns true if more may be left.
async fn expand(
    tx: &WriteTx<'_>,
    lines: &mut LockedQueues,
    front: &ScanPosition,
    environment: &Environment,
    now: Timestamp,
) -> Result<bool, Error> {
    let mut expanded = 0;
    while expanded < EXPANDED_MAX {
        let new_id = || DeliveryId::new(environment.new_id());
        let max = match (lines.has_read_ahead(), tx.is_contended()) {
            // All work that is left belongs to queues that are not locked.
            (true, _) => EXPANDED_MAX,
            (false, true) => EXPANDED_BESIDE_OTHERS,
            (false, false) => EXPANDED_AT_A_TIME,
        };
        if !delivery_queue::fan_out(tx, lines, front, new_id, max, now).await? {
            return Ok(false);
        }
        expanded += max;
        if tx.should_yield() {
            break;
        }
    }
    Ok(true)
}

fn lease_request(
    environment: &Environment,
    session: &str,
    ask: &StoreRequest<AttemptResult>,
    now: Timestamp,
) -> ClaimRequest {
    let time = i64::try_from(LEASE_TIME.as_millis()).unwrap_or(i64::MAX);
    ClaimRequest {
        now,
        until: Timestamp::from_ms(now.ms().saturating_add(time)),
        lease: format!("{:032x}", environment.new_id()),
        session: session.to_owned(),
        max: ask.claim_max,
        failing_max: ask.failing_claim_max,
    }
}
