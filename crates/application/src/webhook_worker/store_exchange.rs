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
const FAN_OUT_STEP: usize = 64;
const CONTENDED_FAN_OUT_STEP: usize = 8;
const FAN_OUT_MAX: usize = 256;

/// The duration of a lease: time for an attempt, for those queued before it, and a margin.
const LEASE_DURATION: Duration = Duration::from_mins(1);

/// The result of an exchange.
#[derive(Default)]
pub(super) struct StoreExchangeResult {
    pub(super) leased: Vec<ClaimedDelivery>,
    /// The results that are not recorded yet, as the transaction yielded to other writers.
    pub(super) unrecorded: Vec<AttemptResult>,
    /// True if the store may have more work.
    pub(super) has_more: bool,
}

/// The parts of an exchange. While the store is contended, an exchange may do only some of them. So
/// each part is the first one in turn.
#[derive(Clone, Copy)]
enum ExchangePart {
    Record,
    FanOut,
    Claim,
}

const PARTS: [ExchangePart; 3] = [ExchangePart::Record, ExchangePart::FanOut, ExchangePart::Claim];

/// Performs the exchange with number `exchange_number`. On an error the request is returned. Unless
/// the connection ended during the commit, nothing was recorded or leased then.
pub(super) async fn run_exchange(
    service: &Service,
    scan_position: &Arc<ScanPosition>,
    session: Arc<str>,
    lease: Arc<str>,
    request: StoreRequest<AttemptResult>,
    exchange_number: usize,
) -> Result<StoreExchangeResult, (Error, StoreRequest<AttemptResult>)> {
    let request = Arc::new(request);
    let result = exchange(
        service,
        Arc::clone(scan_position),
        session,
        lease,
        Arc::clone(&request),
        exchange_number,
    )
    .await;
    result.map_err(|error| (error, Arc::unwrap_or_clone(request)))
}

async fn has_work(service: &Service, scan_position: Arc<ScanPosition>) -> Result<bool, Error> {
    let now = service.environment().now();
    let find_work = async move |tx: &Tx<'_>| {
        Ok::<_, Error>(delivery_queue::has_work(tx, &scan_position, now).await?)
    };
    service.database().read("deliveries.has_work", find_work).await
}

async fn exchange(
    service: &Service,
    scan_position: Arc<ScanPosition>,
    session: Arc<str>,
    lease: Arc<str>,
    request: Arc<StoreRequest<AttemptResult>>,
    exchange_number: usize,
) -> Result<StoreExchangeResult, Error> {
    let environment = service.environment().clone();
    if request.attempt_results.is_empty() && !has_work(service, Arc::clone(&scan_position)).await? {
        return Ok(StoreExchangeResult::default());
    }
    let key = service.key().clone();
    let write = async move |tx: &WriteTx<'_>| {
        let now = environment.now();
        let claims = request.claim_max > 0 || request.failing_claim_max > 0;
        let (mut queues, mut unrecorded, mut leased) = (LockedQueues::default(), None, Vec::new());
        let (mut has_more_to_fan_out, mut has_more_to_claim) = (claims, claims);
        let fan_out_max = if claims { FAN_OUT_MAX } else { 0 };
        delivery_queue::lock_queues_ahead(
            tx,
            &mut queues,
            &scan_position,
            &request.attempt_results,
            fan_out_max,
        )
        .await?;
        let first = if tx.is_contended() { exchange_number % PARTS.len() } else { 0 };
        for part in PARTS.iter().cycle().skip(first).take(PARTS.len()) {
            match part {
                ExchangePart::Record if request.attempt_results.is_empty() => continue,
                ExchangePart::FanOut | ExchangePart::Claim if !claims => continue,
                ExchangePart::Record => {
                    let results = &request.attempt_results;
                    let left = record_results(tx, &mut queues, &environment, &key, results, now);
                    unrecorded = Some(left.await?);
                }
                ExchangePart::FanOut => {
                    has_more_to_fan_out =
                        fan_out(tx, &mut queues, &scan_position, &environment, now).await?;
                    // If leasing came first, it has not seen the new deliveries.
                    has_more_to_claim = true;
                    delivery_queue::continue_recoveries(tx, &mut queues, now).await?;
                }
                ExchangePart::Claim => {
                    let request = claim_request(&session, &lease, &request, now);
                    (leased, has_more_to_claim) =
                        delivery_queue::claim(tx, &mut queues, &scan_position, &request).await?;
                }
            }
            if tx.should_yield() {
                break;
            }
        }
        queues.save(tx).await?;
        let left = unrecorded.unwrap_or_else(|| request.attempt_results.clone());
        Ok::<_, Error>(StoreExchangeResult {
            leased,
            unrecorded: left,
            has_more: has_more_to_fan_out || has_more_to_claim,
        })
    };
    service.database().write_in_background("deliveries.exchange", write).await
}

/// Records results of attempts, and applies their consequences for webhooks. Returns the results
/// that are not recorded yet.
async fn record_results(
    tx: &WriteTx<'_>,
    queues: &mut LockedQueues,
    environment: &Environment,
    key: &SecretKey,
    results: &[AttemptResult],
    now: Timestamp,
) -> Result<Vec<AttemptResult>, Error> {
    let random = || environment.random_fraction();
    let recorded = delivery_queue::record_results(tx, queues, results, now, random).await?;
    for receiver in recorded.receivers {
        operations::deliveries::apply_receiver_state(tx, environment, key, receiver).await?;
    }
    Ok(recorded.deferred)
}

/// Fans out events into deliveries. Returns true if more may be left.
async fn fan_out(
    tx: &WriteTx<'_>,
    queues: &mut LockedQueues,
    scan_position: &ScanPosition,
    environment: &Environment,
    now: Timestamp,
) -> Result<bool, Error> {
    let mut fanned_out = 0;
    while fanned_out < FAN_OUT_MAX {
        let new_id = || DeliveryId::new(environment.new_id());
        let max = match (queues.has_read_ahead(), tx.is_contended()) {
            // All work that is left belongs to queues that are not locked.
            (true, _) => FAN_OUT_MAX,
            (false, true) => CONTENDED_FAN_OUT_STEP,
            (false, false) => FAN_OUT_STEP,
        };
        if !delivery_queue::fan_out(tx, queues, scan_position, new_id, max, now).await? {
            return Ok(false);
        }
        fanned_out += max;
        if tx.should_yield() {
            break;
        }
    }
    Ok(true)
}

fn claim_request(
    session: &str,
    lease: &str,
    request: &StoreRequest<AttemptResult>,
    now: Timestamp,
) -> ClaimRequest {
    let time = i64::try_from(LEASE_DURATION.as_millis()).unwrap_or(i64::MAX);
    ClaimRequest {
        now,
        until: Timestamp::from_ms(now.ms().saturating_add(time)),
        lease: lease.to_owned(),
        session: session.to_owned(),
        max: request.claim_max,
        failing_max: request.failing_claim_max,
    }
}
